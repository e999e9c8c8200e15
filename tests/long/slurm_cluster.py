"""A Slurm of four nodes on one machine: slurmctld, munge, and a slurmd per node with a port of its own."""
import os
import pathlib
import shutil
import socket
import subprocess
import time

NODES = 4
PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "scancel", "squeue"]
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
SlurmdParameters=config_overrides
SlurmdTimeout=10
ReturnToService=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,bf_interval=2,sched_interval=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=30
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=8 RealMemory=1000
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 PreemptMode=REQUEUE
PartitionName=high Nodes=ALL PriorityTier=2 PreemptMode=OFF
"""


def missing_programs():
    search = os.environ["PATH"] + ":/usr/sbin:/sbin"
    return [name for name in PROGRAMS if not shutil.which(name, path=search)]


def free_ports(count):
    """The first of so many ports in a row that nobody listens at."""
    for first in range(16800, 32000, count):
        sockets = [socket.socket() for _ in range(count)]
        try:
            for offset, one in enumerate(sockets):
                one.bind(("127.0.0.1", first + offset))
            return first
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise AssertionError("no free ports")


class Cluster:
    """Its programs run in the foreground, as children of the test, and end with it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.processes = {}
        first = free_ports(NODES + 1)
        host = socket.gethostname().split(".")[0]
        configuration = self.folder / "slurm.conf"
        configuration.write_text(CONFIGURATION.format(folder=self.folder, host=host, port=first, nodes=NODES, first=first + 1,
                                                      last=first + NODES))
        # Names of nodes are no names of the network here, so rank 0 is named by its address.
        self.environment = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", "SLURM_CONF": str(configuration),
                            "MASTER_ADDR": "127.0.0.1"}

    def __enter__(self):
        for name in ["state", *self.nodes()]:
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        options = ["key-file", "socket", "pid-file", "log-file", "seed-file"]
        self.start("munged", "--foreground", "--force",
                   *[f"--{option}={self.folder}/munge.{option.split('-')[0]}" for option in options])
        self.wait(lambda: (self.folder / "munge.socket").exists(), "munged")
        self.start("slurmctld", "-D")
        for node in self.nodes():
            self.start_node(node)
        try:
            self.wait(lambda: self.run("sinfo", "-h", "-t", "idle", "-o", "%D", "-p", "low", check=False).strip() == str(NODES),
                      "four idle nodes")
        except AssertionError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if "slurmctld" in self.processes:
            self.run("scancel", "-u", "root", check=False)
            time.sleep(1)
        for process in reversed(self.processes.values()):
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = {}
        for process in self.own_processes():
            os.kill(process, 9)

    @staticmethod
    def nodes():
        return [f"n{number}" for number in range(1, NODES + 1)]

    def start(self, program, *arguments, name=""):
        with open(self.folder / f"{name or program}.out", "w") as log:
            self.processes[name or program] = subprocess.Popen([program, *arguments], env=self.environment, stdout=log,
                                                               stderr=subprocess.STDOUT, start_new_session=True)

    def start_node(self, node):
        self.start("slurmd", "-D", "-N", node, name=node)

    def kill_node(self, node):
        """As a machine ends that loses its power."""
        tasks = self.own_processes("SLURMD_NODENAME=" + node)
        keepers = {parent for task in tasks if name_of(parent := parent_of(task)).startswith("slurmstepd")}
        self.processes[node].kill()
        self.processes[node].wait()
        for process in [*keepers, *tasks]:
            if name_of(process):
                os.kill(process, 9)
        return len(tasks)

    def own_processes(self, variable=""):
        """Those that run with this cluster's configuration, and this variable."""
        wanted = {f"SLURM_CONF={self.folder}/slurm.conf", variable} - {""}
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                variables = set((path / "environ").read_bytes().decode(errors="replace").split("\0"))
            except OSError:
                continue
            if wanted <= variables and int(path.name) != os.getpid():
                found.append(int(path.name))
        return found

    def run(self, *words, check=True, **options):
        done = subprocess.run([*map(str, words)], env=self.environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=300, **options)
        assert not check or done.returncode == 0, f"exit code {done.returncode} of {words}:\n{done.stdout[-2000:]}"
        return done.stdout

    def wait(self, condition, what, seconds=120):
        end = time.time() + seconds
        while not condition():
            assert time.time() < end, f"no {what} within {seconds} s"
            time.sleep(0.1)

    def job(self, number):
        """What Slurm knows of a job: JobState, Restarts, Reason ..."""
        text = self.run("scontrol", "-o", "show", "job", number)
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def finish(self, number, log, seconds=600):
        """Until the job is done, without the two minutes that Slurm waits before it starts a job again."""
        end = time.time() + seconds
        while True:
            job = self.job(number)
            if job["JobState"] == "PENDING" and job["Reason"] == "BeginTime":
                time.sleep(3)  # those minutes are for messages of the former run
                self.run("scontrol", "update", f"jobid={number}", "StartTime=now", check=False)
            elif job["JobState"] not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED"):
                break
            assert time.time() < end, f"job {number} is {job['JobState']} after {seconds} s:\n{tail(log)}"
            time.sleep(0.2)
        assert job["JobState"] == "COMPLETED", f"job {number} is {job['JobState']}:\n{tail(log)}"
        return int(job["Restarts"])


def tail(log):
    return pathlib.Path(log).read_text()[-3000:] if pathlib.Path(log).exists() else "no output"


def name_of(process):
    try:
        return pathlib.Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


def parent_of(process):
    try:
        return int(pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0
