"""A real Spark for tests: its Connect server, alone or over a cluster on the loopback, from an installed package.

House rules:

1. What a server was started with is all in one temporary folder, removed when it stops. Every process is stopped by
   the id that it was started with, and a shell beside it stops it and removes the folder when the tests die.
2. Everything listens on 127.0.0.1, on ports that the system gives.
3. The settings are those under which a small statement is fast: nothing is compiled, nothing is planned twice. A test
   of something else says so in `settings`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

__all__ = ["SparkServer", "find_spark", "why_no_spark"]

HOME = "DPSQL_SPARK_HOME"
"""The environment variable that names SPARK_HOME: the folder that has `bin` and `jars`."""

_CHECKOUT = Path(__file__).parents[3]
_START_SECONDS = 300
_STOP_SECONDS = 60
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
_STARTED = re.compile(r"Spark Connect server started at: \S*?:([0-9]+)")
_MASTER = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:[0-9]+)")
_REGISTERED = re.compile(r"Successfully registered with master")
# Reads a line to stop a process; the end of its input means that the tests are gone. `spark-class` becomes Java.
_KEEPER = """
folder=$1; pid=$2; shift 2
"$@" </dev/null & process=$!
echo $process >"$pid"
if read -r word; then kill -TERM $process; else kill -KILL $process; rm -rf "$folder"; fi
wait $process
"""
_JAVA = "spark.driver.extraJavaOptions"
_LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.ui.enabled": "false",
}
_FAST = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.scheduler.mode": "FAIR",
    # Nobody looks at what was run: thousands of plans with long texts would fill the memory.
    "spark.connect.ui.retainedSessions": "1",
    "spark.connect.ui.retainedStatements": "1",
    "spark.sql.maxPlanStringLength": "1000",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "100",
}
_CLUSTER = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.sql.shuffle.partitions": "3",
}


def find_spark() -> Path | None:
    """Return SPARK_HOME of the Spark at hand: the one that the environment names, else the checkout's own."""
    named = os.environ.get(HOME)
    places = (
        [Path(named)] if named else sorted(_CHECKOUT.glob(".venv/spark/lib/python*/site-packages/pyspark"))
    )
    return next((place for place in places if (place / "bin" / "spark-class").is_file()), None)


def why_no_spark() -> str:
    """Return why no Spark can be started here, with what to do; "" where one can be."""
    if find_spark() is None:
        return f"no Spark is at hand: make test-spark installs one, and {HOME} names another"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "no Java is at hand, and Spark needs one: version 17 or 21"
    return ""


class SparkServer:
    """A Spark Connect server of its own, for the time of a `with` block.

    `workers`: how many processes of a standalone cluster run the statements, one core each; 0: the server's own two
    threads. `token`: what a client has to show; None: everybody may ask. `settings`: further Spark settings.
    `memory`: of the server's JVM, as Java writes it.
    """

    def __init__(
        self,
        *,
        workers: int = 0,
        token: str | None = None,
        settings: dict[str, str] | None = None,
        memory: str = "2g",
    ) -> None:
        home = find_spark()
        if home is None:
            raise RuntimeError(why_no_spark())
        self.home, self._workers, self._memory = home, workers, memory
        self._settings = _LOOPBACK | _FAST | (_CLUSTER if workers else {}) | (settings or {})
        if token is not None:
            self._settings["spark.connect.authenticate.token"] = token
        self._keepers: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="dpsql-spark-"))
        try:
            master = self._start_cluster() if self._workers else "local[2]"
            self._start_driver(master)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def url(self) -> str:
        """Where the server is, as a policy writes it."""
        return f"spark://127.0.0.1:{self.port}"

    def executors(self) -> list[int]:
        """Return the process ids of the cluster's executors, as they are now."""
        workers = {self._pid(name) for name in self._keepers if name.startswith("worker")}
        listed = subprocess.run(
            ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
        ).stdout
        fields = [line.split(None, 2) for line in listed.splitlines()]
        return [
            int(pid) for pid, parent, command in fields
            if int(parent) in workers and "CoarseGrainedExecutorBackend" in command
        ]  # fmt: skip

    def kill(self) -> None:
        """Let the driver crash, with every statement that it runs."""
        os.kill(self._pid("driver"), signal.SIGKILL)
        self._keepers.pop("driver").communicate(b"stop\n", timeout=_STOP_SECONDS)

    def pause(self) -> None:
        """Let the driver stand still: it takes what is sent to it, and answers nothing."""
        os.kill(self._pid("driver"), signal.SIGSTOP)

    def resume(self) -> None:
        """Let a driver that stands still go on."""
        os.kill(self._pid("driver"), signal.SIGCONT)

    def log(self, name: str = "driver") -> str:
        """Return what a process has written: `driver`, `master`, `worker1`, …."""
        path = self.folder / f"{name}.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    # --- processes ----------------------------------------------------------------------------------------

    def _start_cluster(self) -> str:
        deploy = "org.apache.spark.deploy"
        self._spawn(
            "master", f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"
        )
        master = self._wait_for("master", _MASTER)[1]
        place = ("--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "600m")
        names = [f"worker{number + 1}" for number in range(self._workers)]
        for name in names:
            self._spawn(name, f"{deploy}.worker.Worker", *place, "-d", str(self.folder / name), master)
        for name in names:
            self._wait_for(name, _REGISTERED)
        return master

    def _start_driver(self, master: str) -> None:
        java = f"-XX:TieredStopAtLevel=1 -Xss4m -Djava.io.tmpdir={self.folder}"
        settings = {
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            **self._settings,
            _JAVA: f"{java} {self._settings.get(_JAVA, '')}".rstrip(),  # of two, the last option holds
        }
        options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        command = ["--master", master, *options, "--class", _CONNECT]
        self._spawn("driver", "org.apache.spark.deploy.SparkSubmit", *command, "spark-internal")
        self.port = int(self._wait_for("driver", _STARTED)[1])

    def _spawn(self, name: str, main: str, *arguments: str) -> None:
        command = [str(self.home / "bin" / "spark-class"), main, *arguments]
        with (self.folder / f"{name}.log").open("ab") as log:
            self._keepers[name] = subprocess.Popen(
                ["/bin/sh", "-c", _KEEPER, "sh", str(self.folder), str(self._pid_file(name)), *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self._environment(self._memory if name == "driver" else "256m"),
                start_new_session=True,
            )

    def _environment(self, memory: str) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))
        }
        own = {"SPARK_HOME": str(self.home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": memory}
        own["SPARK_MASTER_OPTS"] = "-Dspark.master.rest.enabled=false"  # its port is the same for all masters
        return (
            kept | own | {"SPARK_CONF_DIR": str(self.folder), "SPARK_LOCAL_DIRS": str(self.folder / "local")}
        )

    def _wait_for(self, name: str, what: re.Pattern[str]) -> re.Match[str]:
        """Return where a process says that it is ready. Raises RuntimeError with the end of its log."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if found := what.search(self.log(name)):
                return found
            if "Exception in thread" in self.log(name):
                break
            time.sleep(0.05)
        raise RuntimeError(f"Spark's {name} did not start: {self.log(name)[-2000:]}")

    def _pid_file(self, name: str) -> Path:
        return self.folder / f"{name}.pid"

    def _pid(self, name: str) -> int:
        return int(self._pid_file(name).read_text(encoding="ascii"))

    def _close(self) -> None:
        """Stop all processes, the last one first."""
        for name, keeper in reversed(self._keepers.items()):
            try:
                keeper.communicate(b"stop\n", timeout=_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.kill(self._pid(name), signal.SIGKILL)
                keeper.communicate(timeout=_STOP_SECONDS)
        self._keepers = {}
        shutil.rmtree(self.folder, ignore_errors=True)
