"""The chart makes objects that Kubernetes takes, for one server, for a pair and for many."""

import os
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from holdfast.compose.claim_store import DRAIN_MS
from holdfast.settings import Settings
from tests.container import ROOT, read_final_stage
from tests.integration.cluster import (
    CHART,
    VALUES,
    chart,
    container,
    objects_of,
    run,
    settings_of_pod,
    stateful,
)

pytestmark = pytest.mark.slow
# The newest and, roughly, the oldest that clusters of providers have.
VERSIONS = ("1.27", "1.31", "1.37")
STOP_MS = Settings.model_fields["shutdown_timeout"].default


@pytest.mark.parametrize("servers", VALUES)
def test_helm_finds_nothing_wrong_with_the_chart(servers: str) -> None:
    told = run("helm", "lint", "--strict", str(CHART), *VALUES[servers])
    assert "0 chart(s) failed" in told


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("servers", VALUES)
def test_objects_of_the_chart_fit_the_schemas_of_kubernetes(servers: str, version: str) -> None:
    more = "--set", "settings.max_queue=5000,image.pullSecrets[0].name=key,data.storageClass=fast"
    for each in chart(servers, *more).values():
        kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("path", ["deploy/pipeline.yaml"])
def test_other_objects_fit_the_schemas_of_kubernetes(path: str) -> None:
    for each in objects_of((ROOT / path).read_text()).values():
        kubernetes_validate.validate(each, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("servers", VALUES)
def test_a_base_of_kustomize_is_what_helm_makes(servers: str) -> None:
    base = run("kustomize", "build", "--enable-helm", f"deploy/kustomize/{servers}")
    assert objects_of(base) == chart(servers)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["servers=pair"], "store.secret is missing"),
        (["servers=many", "store.secret=a"], "links.secret is missing"),
        (["servers=three"], "value must be one of 'one', 'pair', 'many'"),
        (["files.right.secret=a", "files.right.key=b"], "invalid propertyName 'right'"),
        (["files.rights.key=b"], "'oneOf' failed"),
        (["files.rights.secret=a"], "missing property 'key'"),
        (["image.tags=new"], "additional properties 'tags' not allowed"),
    ],
)
def test_the_chart_says_what_is_missing_or_unknown(values: list[str], reason: str) -> None:
    words = [word for value in values for word in ("--set", value)]
    assert reason in run("helm", "template", "holdfast", str(CHART), *words, code=1)


def test_releases_of_other_names_do_not_meet() -> None:
    words = "helm", "template", "shop", str(CHART), *VALUES["many"]
    objects = objects_of(run(*words))
    assert {name.removesuffix("-hosts") for _, name in objects} == {"shop-holdfast"}
    environment = container(objects, "shop-holdfast")["env"]
    [hosts] = [each["value"] for each in environment if each["name"] == "HOLDFAST_HOSTS"]
    assert "shop-holdfast-2.shop-holdfast-hosts:8443" in hosts
    mine = stateful(objects, "shop-holdfast")["selector"]["matchLabels"]
    assert mine != stateful(chart("many"))["selector"]["matchLabels"]


@pytest.mark.parametrize("servers", VALUES)
def test_the_version_of_the_chart_is_that_of_its_image(servers: str) -> None:
    described = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert described["version"] == described["appVersion"]
    assert container(chart(servers))["image"] == f"holdfast:{described['version']}"


@pytest.mark.parametrize("servers", VALUES)
def test_objects_of_the_chart_find_each_other(servers: str) -> None:
    objects = chart(servers)
    spec, pod = stateful(objects), stateful(objects)["template"]["spec"]
    labels = spec["template"]["metadata"]["labels"].items()
    selected = spec["selector"]["matchLabels"]
    assert selected.items() <= labels
    ports = {each["name"]: each["containerPort"] for each in container(objects)["ports"]}
    for name in ("holdfast", "holdfast-hosts"):
        service = objects["Service", name]["spec"]
        assert service["selector"] == selected
        assert {each["targetPort"] for each in service["ports"]} <= ports.keys()
    assert spec["serviceName"] == "holdfast-hosts"
    # A pod that serves nobody is asked for its shards, too.
    assert objects["Service", "holdfast-hosts"]["spec"]["publishNotReadyAddresses"]
    mounts = {each["name"]: each["mountPath"] for each in container(objects)["volumeMounts"]}
    claims = {each["metadata"]["name"] for each in spec["volumeClaimTemplates"]}
    assert mounts.keys() == {each["name"] for each in pod["volumes"]} | claims
    stage = read_final_stage()
    assert mounts["data"] == stage["VOLUME"]
    exposed = {str(ports[name]) for name in ("clients", "operators")}
    assert exposed == {*stage["EXPOSE"].split()}


@pytest.mark.parametrize("servers", VALUES)
def test_a_pod_has_no_privileges_and_is_the_user_of_the_image(servers: str) -> None:
    pod = stateful(chart(servers))["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert str(pod["securityContext"]["runAsUser"]) == read_final_stage()["USER"]
    own = container(chart(servers))["securityContext"]
    assert not own["allowPrivilegeEscalation"]
    assert own["readOnlyRootFilesystem"]
    assert own["capabilities"] == {"drop": ["ALL"]}


def test_one_server_has_a_store_of_its_own_or_a_given_one() -> None:
    assert not settings_of_pod(chart("one"), 0).redis
    given = chart("one", "--set", "store.secret=holdfast-store")
    assert settings_of_pod(given, 0).redis
    assert not settings_of_pod(given, 0).standby


def test_servers_of_a_pair_wait_for_each_other() -> None:
    objects = chart("pair")
    assert stateful(objects)["replicas"] == 2
    pods = [settings_of_pod(objects, number) for number in range(2)]
    assert all(each.standby and each.durability == "replicas:1" for each in pods)
    assert pods[0].node != pods[1].node
    # One of both is never ready: what waits for that would wait for ever.
    assert stateful(objects)["podManagementPolicy"] == "Parallel"
    assert stateful(objects)["updateStrategy"] == {"type": "OnDelete"}
    assert not any(kind == "PodDisruptionBudget" for kind, _ in objects)


@pytest.mark.parametrize("replicas", [3, 5])
def test_each_pod_of_many_is_one_of_the_hosts_by_its_name(replicas: int) -> None:
    objects = chart("many", "--set", f"replicas={replicas}")
    assert stateful(objects)["replicas"] == replicas
    for number in range(replicas):
        settings = settings_of_pod(objects, number)
        assert len(settings.hosts) == replicas
        name = f"holdfast-{number}.holdfast-hosts"
        assert settings.own_host == name
        assert settings.hosts[number] == f"{name}:8443"
        files = settings.link_cert, settings.link_key, settings.link_ca
        expected = [f"/links/{name}.pem", f"/links/{name}.key", "/links/ca.pem"]
        assert [str(each) for each in files] == expected


def test_many_are_drained_before_they_stop_and_one_after_the_other() -> None:
    objects = chart("many")
    budget = objects["PodDisruptionBudget", "holdfast"]["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"] == stateful(objects)["selector"]
    grace_ms = 1000 * stateful(objects)["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace_ms > DRAIN_MS + STOP_MS
    *shell, drain = container(objects)["lifecycle"]["preStop"]["exec"]["command"]
    assert shell == ["sh", "-c"]
    assert drain == 'holdfast host drain "$HOLDFAST_OWN_HOST" --wait'


@pytest.mark.parametrize("servers", ["one", "pair"])
def test_others_have_time_to_stop(servers: str) -> None:
    pod = stateful(chart(servers))["template"]["spec"]
    assert 1000 * pod["terminationGracePeriodSeconds"] > STOP_MS


@pytest.mark.parametrize("servers", VALUES)
def test_other_settings_and_names_of_hosts_are_given_to_the_server(servers: str) -> None:
    more = "--set", "settings.max_queue=5000,hostNames[0]=chat.example.org"
    settings = settings_of_pod(chart(servers, *more), 0)
    assert settings.max_queue == 5000
    inside = ["holdfast", "holdfast.default", "holdfast.default.svc"]
    assert [*settings.host_name] == ["chat.example.org", *inside]


def test_large_numbers_and_fractions_of_a_file_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("settings: {max_request_size: 16777216, max_message_size: 1000000}")
    settings = settings_of_pod(chart("one", "--values", str(file)), 0)
    assert (settings.max_request_size, settings.max_message_size) == (16_777_216, 1_000_000)


FILES = {
    "rights": ("configMap", "holdfast-rights", "rights.toml"),
    "alerts": ("configMap", "holdfast-alerts", "alerts.toml"),
    "login_keys": ("secret", "holdfast-login-keys", "token-key"),
    "login_passwords": ("secret", "holdfast-login-passwords", "users"),
}
FROM_FILES = tuple(
    word
    for setting, (kind, name, key) in FILES.items()
    for word in ("--set", f"files.{setting}.{kind}={name},files.{setting}.key={key}")
)


@pytest.mark.parametrize("servers", VALUES)
def test_files_of_secrets_and_config_maps_are_where_the_settings_say(servers: str) -> None:
    objects = chart(servers, *FROM_FILES)
    for each in objects.values():
        kubernetes_validate.validate(each, VERSIONS[-1], strict=True)
    settings = settings_of_pod(objects, 0)
    mounts = {each["mountPath"]: each for each in container(objects)["volumeMounts"]}
    volumes = {each["name"]: each for each in stateful(objects)["template"]["spec"]["volumes"]}
    for setting, (kind, name, key) in FILES.items():
        file = Path(str(getattr(settings, setting)))
        assert file.name == key
        mount = mounts[str(file.parent)]
        # A file that is mounted by subPath stays as it was.
        assert mount["readOnly"]
        assert "subPath" not in mount
        source = volumes[mount["name"]][kind]
        assert source["secretName" if kind == "secret" else "name"] == name
    assert settings.requires_login


def test_components_of_kustomize_add_what_helm_would_make_of_the_same_files(
    tmp_path: Path,
) -> None:
    base = Path(os.path.relpath(ROOT / "deploy/kustomize", tmp_path))
    overlay = {
        "resources": [str(base / "one")],
        "components": [str(base / "files" / each) for each in FILES],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    objects = objects_of(run("kustomize", "build", "--enable-helm", str(tmp_path)))
    made = chart("one", *FROM_FILES)
    assert objects.keys() == made.keys()
    for name in ("env", "volumeMounts"):
        assert _by_name(container(objects)[name]) == _by_name(container(made)[name])
    pods = [stateful(each)["template"]["spec"]["volumes"] for each in (objects, made)]
    assert _by_name(pods[0]) == _by_name(pods[1])


def _by_name(items: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(items, key=lambda each: str(each["name"]))


@pytest.mark.parametrize("succeeds", [True, False])
def test_a_pod_that_starts_gets_its_shards_back_as_soon_as_it_answers(
    tmp_path: Path, succeeds: bool
) -> None:
    """By the program of its hook, with a command that notes how it was called."""
    *shell, hook = container(chart("many"))["lifecycle"]["postStart"]["exec"]["command"]
    noted, wanted = tmp_path / "noted", 5 if succeeds else 999
    for name, lines in {
        "holdfast": f'echo "$@" >> {noted}\n[ "$(wc -l < {noted})" -ge {wanted} ]',
        "sleep": "true",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{lines}\n")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOLDFAST_OWN_HOST": "holdfast-1.hosts"}
    done = subprocess.run([*shell, hook], env=environment, check=False)
    # A hook that fails would end the pod.
    assert done.returncode == 0
    calls = noted.read_text().splitlines()
    assert len(calls) == (5 if succeeds else 120)
    assert {*calls} == {"host uncordon holdfast-1.hosts"}


def test_compose_files_are_read_by_what_docker_compose_reads_them_with(tmp_path: Path) -> None:
    """It knows all keys, and checks that what a file refers to is there."""
    assert "valkey:" in run("compose-spec", "docker-compose.yml")
    told = run("compose-spec", "deploy/two-machines/compose.yaml")
    assert {"holdfast:", "sentinel:", "valkey:"} <= {*told.split()}
    (tmp_path / "wrong.yaml").write_text("services: {holdfast: {build: ., restarts: always}}\n")
    assert "restarts" in run("compose-spec", str(tmp_path / "wrong.yaml"), code=1)
