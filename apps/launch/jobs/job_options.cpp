#include "apps/launch/jobs/job.h"

namespace bloomery {
namespace {

void describe_resources(OptionTable& t, JobOptions& o) {
  t.section("resources");
  t.add("nodes", o.nodes, "Number of nodes.", at_least(1)).alias("nnodes").alias("num-nodes");
  t.add("gpus-per-node", o.gpus_per_node, "GPUs per node; 0: train on CPUs.", at_least(0))
      .alias("num-gpus")
      .alias("nproc-per-node");
  t.add("ranks-per-node", o.ranks_per_node,
        "Ranks per node; 0: one for each GPU, or one without GPUs.", at_least(0));
  t.add("cpus-per-rank", o.cpus_per_rank, "CPU cores per rank; 0: the scheduler's default.",
        at_least(0));
  t.add("process-per", o.process_per,
        "What the scheduler starts: a process per rank, or one per node that starts its ranks.",
        {{"rank", ProcessPer::rank}, {"node", ProcessPer::node}});
  t.add("time", o.time,
        "Time limit as Slurm writes it: MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS or "
        "DAYS-HOURS:MINUTES:SECONDS; none: the scheduler's.");
  t.add("queue", o.queue, "Partition of Slurm, queue of PBS or of Kueue.").alias("partition");
  t.add("account", o.account, "Account or project that is charged.");
  t.add("qos", o.qos, "Quality of service of Slurm.");
  t.add("directives", o.directives,
        "Further directives for Slurm or PBS, separated by semicolons: "
        "--directives=\"-l filesystems=home:eagle\".");
  t.add("hostfile", o.hostfile, "Hostfile of mpirun (--to mpi).");
}

void describe_running(OptionTable& t, JobOptions& o) {
  t.section("stopping and resuming");
  t.add("grace-seconds", o.grace_seconds,
        "Seconds before the time limit at which the ranks are told to save and stop.", at_least(0));
  t.add("requeue", o.requeue, "Run again after a time limit, a preemption or the loss of a node.")
      .off("Do not run again after a time limit, a preemption or the loss of a node.");
  t.section("containers and files");
  t.add("container", o.container, "Image in which the command runs.");
  t.add("container-runtime", o.runtime,
        "What runs the image; auto: pyxis under Slurm, otherwise apptainer.",
        {{"auto", ContainerRuntime::automatic},
         {"pyxis", ContainerRuntime::pyxis},
         {"apptainer", ContainerRuntime::apptainer},
         {"shifter", ContainerRuntime::shifter}});
  t.add("mounts", o.mounts,
        "Folders for the container, FROM:TO with commas between; Kubernetes: CLAIM:TO of a "
        "persistent volume claim.");
  t.add("stage", o.stage,
        "Files, folders or corpus prefixes, with commas between, that are copied to a local disk "
        "of each node; the command reads the copies.");
  t.add("stage-folder", o.stage_folder, "Folder of the nodes for the copies.");
  t.add("output-folder", o.output_folder, "Folder for the output of each rank, rank-N.log.");
}

}  // namespace

void describe(OptionTable& t, JobOptions& o) {
  t.section("job file");
  t.add("to", o.to, "Write a job file for this scheduler instead of starting ranks.",
        {{"slurm", Scheduler::slurm},
         {"pbs", Scheduler::pbs},
         {"kubernetes", Scheduler::kubernetes},
         {"mpi", Scheduler::mpi}});
  t.add("output", o.output, "File for it; none: standard output.");
  t.add("submit", o.submit, "Submit it: sbatch, qsub, kubectl apply, or run it with bash (mpi).");
  t.add("job-name", o.name, "Name of the job.");
  t.add("kind", o.kind, "Kubernetes: object that runs the pods.",
        {{"job", KubernetesKind::job},
         {"jobset", KubernetesKind::jobset},
         {"pytorchjob", KubernetesKind::pytorchjob}});
  describe_resources(t, o);
  describe_running(t, o);
}

}  // namespace bloomery
