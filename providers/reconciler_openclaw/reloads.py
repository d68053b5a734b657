"""Which settings a running gateway takes in by restarting itself: its own `reloadKind` per path, version by version.

What `config.schema.lookup` answers for every path of the first three levels, shortened: the longest word that a path
begins with counts, and one with a minus before it needs no restart. A test asks the real gateways for each word. A plan
starts nothing and asks nobody, hence the table; what a write really brought about is in the gateway's answer to it.
"""

from __future__ import annotations

from . import roster
from .view import Path

_NEW = """
approvals -approvals.exec -approvals.plugin attachments -attachments.ttlHours auth -auth.order -auth.profiles
browser -browser.allowSystemProfileImport -browser.attachOnly -browser.cdpUrl -browser.defaultProfile -browser.enabled
-browser.evaluateEnabled -browser.executablePath -browser.extensionRelay.allowLegacyAuth -browser.extraArgs
-browser.headless -browser.noSandbox -browser.profiles -browser.snapshotDefaults -browser.ssrfPolicy -browser.tabCleanup
desktop -desktop.host diagnostics -diagnostics.cacheTrace.enabled -diagnostics.enabled -diagnostics.flags
discovery -discovery.mdns.mode env gateway -gateway.allowRealIpFallback -gateway.auth.allowTailscale
-gateway.auth.identityScopes -gateway.auth.rateLimit -gateway.auth.trustedProxy -gateway.cliAgents
-gateway.controlUi.allowExternalEmbedUrls -gateway.controlUi.allowedOrigins
-gateway.controlUi.automaticallyFetchFavicons -gateway.controlUi.communityInvite
-gateway.controlUi.dangerouslyAllowHostHeaderOriginFallback -gateway.controlUi.embedSandbox -gateway.controlUi.enabled
-gateway.controlUi.environment -gateway.controlUi.experimental.customPlugins -gateway.controlUi.github
-gateway.controlUi.sessionObserver -gateway.http.endpoints -gateway.http.securityHeaders.strictTransportSecurity
-gateway.nodes.allowSkills -gateway.nodes.browser -gateway.nodes.commands -gateway.nodes.pairing
-gateway.nodes.pluginTools.enabled -gateway.publicOrigin -gateway.push.apns.relay -gateway.reload -gateway.remote
-gateway.roles -gateway.terminal -gateway.tools -gateway.trustedProxies mcp.apps -mcp.apps.sandboxOrigin
memory -memory.citations nodeHost proxy secrets.egressProxy security -security.audit.suppressions
-security.installPolicy telemetry -telemetry.consentedAt -telemetry.enabled update -update.auto.enabled -update.channel
-update.checkOnStart
"""
_OLD = """
accessGroups acp approvals audit auth -auth.cooldowns broadcast browser -browser.profiles channels cli commands
commitments crestodian diagnostics -diagnostics.memoryPressureSnapshot -diagnostics.stuckSessionAbortMs
-diagnostics.stuckSessionWarnMs discovery env gateway -gateway.channelHealthCheckMinutes
-gateway.channelMaxRestartsPerHour -gateway.channelStaleEventThresholdMinutes -gateway.reload -gateway.remote
marketplaces media memory models.pricing nodeHost plugins.allow plugins.deny plugins.enabled plugins.entries.canvas
plugins.load proxy security surfaces transcripts update web
"""


def words(version: str | None) -> dict[Path, bool]:
    """Path → whether it restarts the gateway."""
    said = (_OLD if roster.is_old(version) else _NEW).split()
    return {tuple(word.lstrip("-").split(".")): not word.startswith("-") for word in said}


def restarts(path: Path, version: str | None) -> bool:
    """Whether a write of this path, or of anything below it, restarts a running gateway."""
    steps, known = tuple(map(str, path)), words(version)
    above = [word for word in known if steps[: len(word)] == word]
    below = any(needs and word[: len(steps)] == steps for word, needs in known.items())
    return below or (bool(above) and known[max(above, key=len)])
