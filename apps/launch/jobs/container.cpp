#include "apps/launch/jobs/script.h"
#include "apps/launch/jobs/shell_text.h"

namespace bloomery {
namespace {

// The working folder of the job is in the container under its own path.
std::string mount_flags(const Job& job, const std::string& flag) {
  std::string text;
  for (const Mount& mount : job.mounts) {
    text += flag + shell_word(mount.from + ":" + mount.to);
  }
  if (!job.staged.empty()) {
    text += flag + "\"$stage:$stage\"";
  }
  return text;
}

}  // namespace

std::string container_command(const Job& job) {
  if (job.options.container.empty() || job.runtime == ContainerRuntime::pyxis) {
    return {};
  }
  const std::string image = shell_word(job.options.container);
  if (job.runtime == ContainerRuntime::shifter) {
    return "shifter --image=" + image + mount_flags(job, " --volume=") + " --workdir=\"$PWD\"";
  }
  return std::string("apptainer exec") + (job.gpus > 0 ? " --nv" : "") +
         mount_flags(job, " --bind ") + " --bind \"$PWD\" --pwd \"$PWD\" " + image;
}

std::string pyxis_flags(const Job& job) {
  if (job.options.container.empty() || job.runtime != ContainerRuntime::pyxis) {
    return {};
  }
  std::string mounts = "\"$PWD:$PWD\"";
  for (const Mount& mount : job.mounts) {
    mounts += "," + shell_word(mount.from + ":" + mount.to);
  }
  if (!job.staged.empty()) {
    mounts += ",\"$stage:$stage\"";
  }
  return " \\\n  --container-image=" + shell_word(job.options.container) +
         " --container-workdir=\"$PWD\" \\\n  --container-mounts=" + mounts;
}

}  // namespace bloomery
