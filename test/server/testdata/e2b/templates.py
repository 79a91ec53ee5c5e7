"""Templates with the SDK, against the server that the environment names."""

import os
import pathlib
import tempfile

from e2b import Sandbox, SandboxException, Template, wait_for_file, wait_for_port
from e2b.exceptions import BuildException


def fails(template, name, *words):
    """Builds what cannot be built, and returns the lines that the SDK shows for it."""
    try:
        Template.build(template, name)
    except BuildException as e:
        assert all(w in str(e) for w in words), e
        lines = []
        trace = e.__traceback__
        while trace:
            lines.append(trace.tb_lineno)
            trace = trace.tb_next
        return lines
    raise AssertionError("what fails is built")


def files(context):
    (context / "app" / "sub").mkdir(parents=True)
    (context / "app" / "main.sh").write_text("#!/bin/sh\necho main\n")
    (context / "app" / "sub" / "data").write_text("data")
    (context / "app" / "link").symlink_to("sub/data")
    (context / "app" / "nowhere").symlink_to("/not/there")
    (context / "one.txt").write_text("one")
    (context / "two.txt").write_text("two")
    (context / "more").mkdir()
    (context / "more" / "three.txt").write_text("three")


def as_user(context):
    assert Template.exists("base") and Template.exists("code-interpreter-v1") and not Template.exists("mine")
    base = (
        Template(file_context_path=context)
        .from_template("base")
        .set_envs({"WHO": "a template", "KEPT": "yes"})
        .set_workdir("/srv/work")
        .copy("app", "app")
        .copy("one.txt", "renamed.txt", mode=0o600)
        .copy("two.txt", "into/")
        .copy("*.txt", "/srv/texts", gzip=False)
        .copy("more/*.txt", "/srv/texts")
        .run_cmd(["pwd >where", 'echo "built by $WHO"', "echo oops >&2", "chmod +x app/main.sh"])
        .make_dir("made/deep")
        .make_symlink("/srv/texts", "texts")
        .remove("into", recursive=True)
    )
    logs = []
    built = Template.build(base, "mine", tags=["v1", "stable"], on_build_logs=lambda entry: logs.append(entry.message))
    assert built.template_id == "mine" and sorted(built.tags) == ["stable", "v1"], built
    assert "built by a template" in logs and "oops" in logs, logs
    assert Template.exists("mine") and Template.exists("mine:v1") and not Template.exists("mine:v2")
    with Sandbox.create("mine:v1", envs={"WHO": "a sandbox"}) as sb:
        run = sb.commands.run
        assert run("pwd; cat where").stdout == "/srv/work\n/srv/work\n"
        assert run("echo $WHO $KEPT").stdout == "a sandbox yes\n"
        assert run("cat app/sub/data app/link renamed.txt texts/two.txt texts/three.txt").stdout == "datadataonetwothree"
        assert run("readlink app/link app/nowhere").stdout == "sub/data\n/not/there\n"
        assert run("app/main.sh; stat -c %a renamed.txt; test -d made/deep; test ! -e into").stdout == "main\n600\n"
        snapshot = sb.create_snapshot()
    with Sandbox.create(snapshot.snapshot_id) as sb:
        assert sb.commands.run("pwd; echo $WHO").stdout == "/srv/work\na template\n"
    tagged = Template.assign_tags("mine:v1", ["v2", "v3"])
    assert sorted(tagged.tags) == ["v2", "v3"] and tagged.build_id == built.build_id, tagged
    Template.remove_tags("mine", ["stable", "v3"])
    assert {t.tag for t in Template.get_tags("mine")} == {"v1", "v2"}

    server = (
        Template()
        .from_template("mine:v2")
        .run_cmd('test "$WHO" = "a template" && test "$PWD" = /srv/work')
        .set_start_cmd("echo starts; echo $WHO >>started; exec python3 -m http.server 8000", wait_for_port(8000))
    )
    logs.clear()
    Template.build(server, "server", on_build_logs=lambda entry: logs.append(entry.message))
    assert "starts" in logs, logs
    for _ in range(2):
        with Sandbox.create("server", envs={"WHO": "me"}) as sb:
            assert "renamed.txt" in sb.commands.run("curl -s http://127.0.0.1:8000/").stdout
            assert sb.commands.run("cat started").stdout == "me\n", "it was started before it was built"
    Template.build(Template().from_base_image().set_start_cmd("touch ready", wait_for_file("ready")), "server")  # in its place
    with Sandbox.create("server") as sb:
        assert sb.commands.run("pwd; ls").stdout == "/home/user\nready\n"

    bad = Template().from_base_image().run_cmd("true").run_cmd("echo no >&2; exit 3").run_cmd("true")  # BAD
    line = next(n for n, text in enumerate(open(__file__), 1) if text.endswith("# BAD\n"))
    assert line in fails(bad, "bad", "failed to run command 'echo no >&2; exit 3': command failed: ", "3")
    fails(Template().from_base_image().run_cmd("whoami", user="nobody-here"), "bad", "invalid username: 'nobody-here'")
    fails(Template().from_template("none"), "bad", "template 'none' not found")
    fails(Template().from_image("python:3"), "bad", "not allowed")
    fails(Template().from_image("python:3", "me", "secret"), "bad", "fromImageRegistry")
    fails(Template().from_base_image().set_user("root"), "bad", "--user root")
    fails(Template(), "base", "choose another name")
    assert not Template.exists("bad")
    try:
        Sandbox.create("bad")
        raise AssertionError("a template that was not built is there")
    except SandboxException:
        pass


def as_root(context):
    """What needs a server whose sandboxes are root."""
    template = (
        Template(file_context_path=context)
        .from_dockerfile("FROM e2bdev/base\nWORKDIR /opt/app\nCOPY one.txt .\nENV A=1\nRUN id -un >/usr/local/who\nUSER root")
        .copy("app", "/opt/theirs", user="root:root")
        .run_cmd("chmod 755 /opt/theirs/main.sh", user="root")
    )
    Template.build(template, "root")
    with Sandbox.create("root") as sb:
        assert sb.commands.run("id -un; pwd; cat /usr/local/who one.txt; echo $A").stdout == "root\n/opt/app\nroot\none1\n"
        assert sb.commands.run("/opt/theirs/main.sh", user="user").stdout == "main\n"
    fails(Template(file_context_path=context).from_base_image().copy("app", "app", user="worker"), "bad", "belong to user and root only")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as context:
        files(pathlib.Path(context))
        with Sandbox.create() as sb:
            root = sb.commands.run("id -u").stdout == "0\n"
        (as_root if root else as_user)(context)
    os._exit(0)  # as sdk.py does
