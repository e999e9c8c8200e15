"""Programs that answer a script in place of a cluster, the network and Python, and note how they were called."""
import os
import pathlib
import shlex

# Behind each name a shell text. $STAND_INS has a folder for each start that Bloomery's shims were asked for.
NOTE = 'printf "%s\\n" "$(basename "$0") $*" >> "$STAND_INS/calls"\n'
GPUS = 8
PROGRAMS = {
    # One machine with eight GPUs, whose hostfile DeepSpeed does not find.
    "nvidia-smi": f"""case "$*" in
*name*) for i in $(seq {GPUS}); do echo NVIDIA-GPU; done ;;
*memory*) echo memory; echo 81559 MiB ;;
esac
""",
    "sleep": "exit 0\n",  # a script waits a minute before each of 32 tasks
    "ssh": NOTE + "exit 1\n",  # worker-0 has no checkpoint
    "pdsh": NOTE,
    "scontrol": 'echo node0\n',
    # A step of as many tasks as the job has, of which the first is played.
    "srun": NOTE + """while [ $# -gt 0 ]; do
  case "$1" in
  --*=*|-l) shift ;;
  --container-*|-n|-N) shift 2 ;;
  *) break ;;
  esac
done
export SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0
export SLURM_STEP_NODELIST=node0 SLURM_STEP_NUM_TASKS=${SLURM_NTASKS:-1} SLURM_STEP_TASKS_PER_NODE=${SLURM_NTASKS:-1}
exec "$@"
""",
    # The job's file runs at once, with the numbers of the command line and of its own lines.
    "sbatch": NOTE + """nodes=
while [ $# -gt 0 ]; do
  case "$1" in
  --nodes=*) nodes=${1#*=}; shift ;;
  --*=*) shift ;;
  -p|-A) shift; case "$1" in -*|"") ;; *) shift ;; esac ;;
  *) break ;;
  esac
done
line=$(grep '^#SBATCH' "$1")
own=$(echo "$line" | sed -n 's/.*--nodes=\\([0-9]*\\).*/\\1/p')
tasks=$(echo "$line" | sed -n 's/.*--ntasks-per-node=\\([0-9]*\\).*/\\1/p')
export SLURM_NTASKS=$((${nodes:-${own:-1}} * ${tasks:-1}))
echo "Submitted batch job 1"
exec bash "$1"
""",
    "mpirun": NOTE + 'while [ "${1#-}" != "$1" ]; do shift 2; done\nexec "$@"\n',
    "qsub": NOTE,
    "pip": NOTE, "pip3": NOTE, "sudo": NOTE, "patch": NOTE,
    # What other programs of Python do is no matter of this test.
    "python": NOTE, "python3": NOTE, "deepspeed": NOTE, "torchrun": NOTE,
    # Vocabularies come from the folder of shared data; nothing else is fetched.
    "wget": NOTE + """if [ "$1" = -P ]; then cd "$2"; fi
for word; do
  case "$word" in http*) name=$(basename "$word"); [ -e "$name" ] || cp "$DOWNLOADS/$name" . 2>/dev/null ;; esac
done
exit 0
""",
    # A repository is a folder that the test has prepared, or an empty one.
    "git": NOTE + """if [ "$1" = clone ]; then
  for word; do name=$(basename "$word" .git); done
  [ -e "$name" ] || cp -r "$CLONES/$name" . 2>/dev/null || mkdir -p "$name"
fi
""",
    "docker": NOTE, "enroot": NOTE, "kubectl": NOTE, "aws": NOTE, "module": NOTE, "conda": NOTE, "make": NOTE, "apptainer": NOTE,
}
PROGRAMS["mpiexec"] = PROGRAMS["mpirun"]


def write_program(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def write_stand_ins(folder):
    folder.mkdir()
    for name, text in PROGRAMS.items():
        write_program(folder / name, text)


def recorded_shims(program, folder, records, started=None):
    """The shims of the program, each call of which leaves words, output and exit code in `records`. They start `started`."""
    program("shims", "--dir", folder)
    recorder = folder.parent / "recorder"
    write_program(recorder, f"""here=$(mktemp -d {shlex.quote(str(records))}/$(date +%s%N).XXXX)
printf '%s\\n' "$@" > "$here/words"
{shlex.quote(str(started or program.path))} "$@" > "$here/out" 2> "$here/errors"
code=$?
cat "$here/out"; cat "$here/errors" >&2
echo $code > "$here/code"
exit $code
""")
    for shim in folder.iterdir():
        text = shim.read_text()
        assert program.path in text, text
        shim.write_text(text.replace(program.path, str(recorder)))


class Call:
    """What one shim was asked for and what came of it."""

    def __init__(self, folder):
        self.name, *self.arguments = (folder / "words").read_text().splitlines()[1:]
        self.out, self.errors = (folder / "out").read_text(), (folder / "errors").read_text()
        code = folder / "code"
        self.code = int(code.read_text()) if code.exists() else None  # none: it was ended


def calls_in(records):
    return [Call(folder) for folder in sorted(records.iterdir()) if folder.is_dir()]


def environment(shims, programs, records, downloads, **more):
    return {**{name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "BLOOMERY_", "OMPI_"))},
            "PATH": f"{shims}:{programs}:/usr/local/bin:/usr/bin:/bin", "STAND_INS": str(records), "DOWNLOADS": str(downloads),
            "HOME": str(pathlib.Path(records).parent), **more}
