// Kubernetes: an indexed Job, a JobSet or a PyTorchJob with a pod per node, for kubectl apply.
#include "apps/bloomery.h"
#include "apps/launch/jobs/script.h"
#include "apps/launch/jobs/shell_text.h"
#include "apps/launch/jobs/staging.h"
#include "apps/launch/jobs/yaml_text.h"
#include "base/error.h"
#include "comm/tcp/hello.h"

namespace bloomery {
namespace {

constexpr int kPort = 29'500;
constexpr const char* kStageFolder = "/stage";

std::string first_pod(const Job& job) {
  const std::string& name = job.options.name;
  return job.options.kind == KubernetesKind::jobset ? concat(name, "-node-0-0.", name)
                                                    : concat(name, "-0.", name);
}

// The words of the container. Kubernetes replaces $(NAME) in them and takes $$( for $(.
std::vector<std::string> pod_words(const Job& job) {
  const bool operator_says = job.options.kind == KubernetesKind::pytorchjob;
  std::vector<std::string> words = {
      "launch",
      concat("--nnodes=", job.options.nodes),
      operator_says ? "--node_rank=$(RANK)" : "--node_rank=$(JOB_COMPLETION_INDEX)",
      concat("--nproc_per_node=", job.ranks),
      operator_says ? "--master_addr=$(MASTER_ADDR)" : "--master_addr=" + first_pod(job),
      operator_says ? "--master_port=$(MASTER_PORT)" : concat("--master_port=", kPort)};
  if (!job.options.output_folder.empty()) {
    words.push_back(without_references("--output-folder=" + job.options.output_folder));
  }
  words.push_back("--");
  for (const std::string& word : plain_words(job, kStageFolder)) {
    words.push_back(without_references(word));
  }
  return words;
}

std::string resources(const Job& job) {
  const JobOptions& o = job.options;
  std::string text;
  if (job.gpus > 0) {
    text += concat("nvidia.com/gpu: ", job.gpus, "\n");
  }
  if (o.cpus_per_rank > 0) {
    text += concat("cpu: ", o.cpus_per_rank * job.ranks, "\n");
  }
  return text.empty() ? text : "resources:\n  limits:\n" + indented(text, 4);
}

std::string mount_list(const Job& job) {
  std::string text = "- {name: shm, mountPath: /dev/shm}\n";
  for (std::size_t i = 0; i < job.mounts.size(); ++i) {
    text += concat("- {name: claim-", i, ", mountPath: ", yaml_text(job.mounts[i].to), "}\n");
  }
  if (!job.staged.empty()) {
    text += concat("- {name: stage, mountPath: ", kStageFolder, "}\n");
  }
  return "volumeMounts:\n" + indented(text, 2);
}

std::string volume_list(const Job& job) {
  std::string text =
      "- name: shm  # NCCL and the ranks of a pod share memory\n  emptyDir: {medium: Memory}\n";
  for (std::size_t i = 0; i < job.mounts.size(); ++i) {
    text += concat("- name: claim-", i,
                   "\n  persistentVolumeClaim: {claimName: ", yaml_text(job.mounts[i].from), "}\n");
  }
  if (!job.staged.empty()) {
    text += "- name: stage  # a disk of the node\n  emptyDir: {}\n";
  }
  return "volumes:\n" + indented(text, 2);
}

std::string staging(const Job& job) {
  if (job.staged.empty()) {
    return {};
  }
  std::string text =
      concat("- name: stage\n  image: ", yaml_text(job.options.container), "\n  command:\n");
  std::vector<std::string> words = {"bash", "-c", kCopy, kStageFolder};
  words.insert(words.end(), job.staged.begin(), job.staged.end());
  for (const std::string& word : words) {
    text += "    - " + yaml_text(without_references(word)) + "\n";
  }
  return "initContainers:\n" + indented(text + indented(mount_list(job), 2), 2);
}

// The container's name is the one that the operator of PyTorchJobs looks for.
std::string container(const Job& job) {
  std::string text = concat("- name: pytorch\n  image: ", yaml_text(job.options.container), "\n");
  text += "  command: [bloomery]\n  args:\n";
  for (const std::string& word : pod_words(job)) {
    text += "    - " + yaml_text(word) + "\n";
  }
  text += concat("  env:\n    - name: BLOOMERY_SECRET  # by which the ranks know each other\n",
                 "      valueFrom:\n        secretKeyRef: {name: ", job.options.name,
                 ", key: secret}\n");
  text += concat("  ports:\n    - {name: master, containerPort: ", kPort, "}\n");
  return "containers:\n" + indented(text + indented(resources(job) + mount_list(job), 2), 2);
}

std::string pod(const Job& job) {
  const bool operator_restarts = job.options.kind == KubernetesKind::pytorchjob;
  std::string text;
  if (!operator_restarts) {
    text += "restartPolicy: Never\n";
  }
  if (job.options.kind == KubernetesKind::job) {
    text += "subdomain: " + job.options.name + "\n";
  }
  text += concat("terminationGracePeriodSeconds: ", job.options.grace_seconds,
                 "  # after SIGTERM: save and stop\n");
  return text + staging(job) + container(job) + volume_list(job);
}

std::string deadline(const Job& job) {
  return job.seconds > 0 ? concat("activeDeadlineSeconds: ", job.seconds, "\n") : "";
}

// The specification of an indexed Job.
std::string indexed_job(const Job& job) {
  const JobOptions& o = job.options;
  std::string text =
      concat("completionMode: Indexed\ncompletions: ", o.nodes, "\nparallelism: ", o.nodes,
             "\nbackoffLimit: ", o.requeue ? 4 * o.nodes : 0, "\n", deadline(job));
  if (o.requeue) {
    text +=
        "podFailurePolicy:\n  rules:\n"
        "    # 75: stopped early with a checkpoint. The pod runs again and is no failure.\n"
        "    - action: Ignore\n      onExitCodes: {containerName: pytorch, operator: In, values: "
        "[75]}\n"
        "    - action: Ignore  # evicted, or its node was drained\n"
        "      onPodConditions: [{type: DisruptionTarget, status: \"True\"}]\n";
  }
  return text + "template:\n  spec:\n" + indented(pod(job), 4);
}

std::string header(const Job& job, const char* version, const char* kind) {
  std::string text = concat("---\napiVersion: ", version, "\nkind: ", kind,
                            "\nmetadata:\n  name: ", job.options.name, "\n");
  if (!job.options.queue.empty() && std::string_view(kind) != "Secret" &&
      std::string_view(kind) != "Service") {
    text +=
        concat("  labels:\n    kueue.x-k8s.io/queue-name: ", yaml_text(job.options.queue), "\n");
  }
  return text;
}

std::string service(const Job& job) {
  return header(job, "v1", "Service") +
         concat("spec:  # gives the pods names; the first one is ", first_pod(job),
                "\n  clusterIP: None\n  publishNotReadyAddresses: true\n  selector:\n"
                "    job-name: ",
                job.options.name, "\n");
}

std::string pytorchjob(const Job& job) {
  const auto replicas = [&](const char* role, int count) {
    return concat(role, ":\n  replicas: ", count, "\n  restartPolicy: ",
                  job.options.requeue ? "OnFailure  # 75 too: it resumes" : "Never",
                  "\n  template:\n    spec:\n", indented(pod(job), 6));
  };
  std::string specs = replicas("Master", 1);
  specs += job.options.nodes > 1 ? replicas("Worker", job.options.nodes - 1) : "";
  std::string policy = concat("cleanPodPolicy: Running\nbackoffLimit: ",
                              job.options.requeue ? 4 * job.options.nodes : 0, "\n", deadline(job));
  return header(job, "kubeflow.org/v1", "PyTorchJob") + "spec:\n  runPolicy:\n" +
         indented(policy, 4) + "  pytorchReplicaSpecs:\n" + indented(specs, 4);
}

std::string jobset(const Job& job) {
  return header(job, "jobset.x-k8s.io/v1alpha2", "JobSet") +
         concat("spec:\n  network: {subdomain: ", job.options.name,
                "}\n  failurePolicy: {maxRestarts: ", job.options.requeue ? 4 : 0,
                "}  # a restart begins all pods again\n  replicatedJobs:\n    - name: node\n"
                "      replicas: 1\n      template:\n        spec:\n",
                indented(indexed_job(job), 10));
}

}  // namespace

std::string kubernetes_manifest(const Job& job) {
  check(is_bloomery_command(job.command), "'", job.command[0],
        "' is no bloomery command, and the pods start bloomery");
  std::string text = written_by(job.invocation) + "# Submit it with kubectl apply -f FILE.\n" +
                     header(job, "v1", "Secret") +
                     concat("stringData:\n  secret: \"", secret_text(random_secret()), "\"\n");
  switch (job.options.kind) {
    case KubernetesKind::pytorchjob:
      return text + pytorchjob(job);
    case KubernetesKind::jobset:
      return text + jobset(job);
    case KubernetesKind::job:
      break;
  }
  return text + service(job) + header(job, "batch/v1", "Job") + "spec:\n" +
         indented(indexed_job(job), 2);
}

}  // namespace bloomery
