#include "apps/launch/jobs/submit.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <system_error>

#include "apps/launch/environment.h"
#include "base/error.h"

namespace bloomery {
namespace {

std::vector<std::string> submit_words(Scheduler scheduler, const std::string& file) {
  switch (scheduler) {
    case Scheduler::slurm:
      return {"sbatch", file};
    case Scheduler::pbs:
      return {"qsub", file};
    case Scheduler::kubernetes:
      return {"kubectl", "apply", "-f", file};
    case Scheduler::mpi:
      break;
  }
  return {"bash", file};
}

}  // namespace

int submit_job(Scheduler scheduler, const std::string& file) {
  std::vector<std::string> words = submit_words(scheduler, file);
  check(is_program(words[0]), words[0],
        " is not on this machine: give --output FILE instead of --submit, and submit the file "
        "where it is");
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  pid_t process = -1;
  const int problem =
      posix_spawnp(&process, pointers[0], nullptr, nullptr, pointers.data(), environ);
  if (problem != 0) {
    throw std::system_error(problem, std::generic_category(), words[0]);
  }
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace bloomery
