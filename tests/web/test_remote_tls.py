"""The command line sends its token only to servers whose certificate it trusts."""

import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.cli.failures import Exit
from tests.serving import PROGRAM, ROOT, environment
from tests.web.programs import program
from tests.web.test_start import self_signed


def test_a_publish_without_tls_fails_at_the_first_attempt(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    with program("--port", "0", "--tls-cert", cert, "--tls-key", key, home=tmp_path) as running:
        url = f"http://localhost:{urlsplit(running.place()).port}"
        done = subprocess.run(
            [*PROGRAM, "publish", "/a", "1", "--url", url],
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == Exit.UNREACHABLE
        assert "or, if it uses TLS, write https://" in done.stderr
        assert "no session within" not in done.stderr
        assert running.stop()[0] == 0


def test_the_token_is_not_sent_to_an_untrusted_server(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    with program("--port", "0", "--tls-cert", cert, "--tls-key", key, home=tmp_path) as running:
        port = urlsplit(running.place()).port
        token = tmp_path / "data/admin-token"
        asked = [*PROGRAM, "session", "list", "--json", "--token-file", str(token)]

        def run(scheme: str = "https", **variables: str) -> subprocess.CompletedProcess[str]:
            command = [*asked, "--url", f"{scheme}://localhost:{port}"]
            env = {**environment(), **variables}
            return subprocess.run(
                command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=60
            )

        doubtful = run()
        assert doubtful.returncode not in (0, Exit.USAGE), doubtful.stdout
        told = "this machine does not trust its certificate: set SSL_CERT_FILE"
        assert told in doubtful.stderr
        assert "or, if it uses TLS, write https://" in run("http").stderr
        known = run(SSL_CERT_FILE=cert)
        assert known.returncode == 0, known.stderr
        assert running.stop()[0] == 0
