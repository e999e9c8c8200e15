#include "apps/launch/watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "apps/common/command_line.h"
#include "base/log.h"
#include "base/stop_signals.h"

namespace bloomery {
namespace {

int exit_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string how_it_ended(int status) {
  return WIFSIGNALED(status) ? concat("was ended by ", signal_name(WTERMSIG(status)), " (",
                                      strsignal(WTERMSIG(status)), ")")
                             : concat("ended with exit code ", WEXITSTATUS(status));
}

class Watch {
 public:
  Watch(std::vector<Child>& children, const PassedSignals& signals, const WatchOptions& options)
      : children_(children), signals_(signals), options_(options) {}

  WatchEnd run() {
    while (std::ranges::any_of(children_, &Child::running)) {
      wait_once();
      reap();
      end_stragglers();
    }
    return {code_, asked_from_outside_};
  }

 private:
  void wait_once() {
    std::vector<pollfd> waits{{signals_.descriptor(), POLLIN, 0},
                              {orders_end_ ? -1 : options_.orders, POLLIN, 0}};
    std::vector<Child*> whose(waits.size());
    for (Child& child : children_) {
      for (const int output : child.outputs()) {
        waits.push_back({output, POLLIN, 0});
        whose.push_back(&child);
      }
    }
    poll(waits.data(), waits.size(), 200);
    if (waits[0].revents != 0) {
      read_signal();
    }
    if (waits[1].revents != 0) {
      read_orders();
    }
    for (std::size_t i = 2; i < waits.size(); ++i) {
      if (waits[i].revents != 0) {
        whose[i]->pass_on_output();
      }
    }
  }

  void read_signal() {
    signalfd_siginfo info{};
    while (read(signals_.descriptor(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGCHLD) {
        pass_signal(static_cast<int>(info.ssi_signo));
      }
    }
  }

  void read_orders() {
    char bytes[256];
    const ssize_t count = read(options_.orders, bytes, sizeof bytes - 1);
    if (count <= 0) {
      orders_end_ = true;
      return signal_all(SIGTERM);
    }
    bytes[count] = '\0';
    for (const char* at = bytes; at != nullptr && *at != '\0';) {
      const int number = std::atoi(at);
      number < 0 ? signal_all(-number) : pass_signal(number);
      at = std::strchr(at, '\n');
      at = at == nullptr ? nullptr : at + 1;
    }
  }

  void pass_signal(int number) {
    asked_from_outside_ = true;
    signal_all(number);
  }

  void signal_all(int number) {
    for (const Child& child : children_) {
      child.signal(number);
    }
  }

  void reap() {
    int status = 0;
    for (pid_t process = 0; (process = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto child = std::ranges::find(children_, process, &Child::process);
      if (child == children_.end()) {
        continue;
      }
      child->finish_output();
      child->set_ended();
      if (status != 0 && code_ == 0) {
        code_ = exit_code(status);
        ask_at_ = seconds_from_now(options_.leave_seconds);
        kill_at_ = seconds_from_now(options_.leave_seconds + options_.kill_seconds);
        if (WIFSIGNALED(status)) {
          Log().error(child->name(), " ", how_it_ended(status), "; the others end");
        }
      }
    }
  }

  void end_stragglers() {
    if (code_ == 0) {
      return;
    }
    if (!asked_ && seconds_until(ask_at_) == 0) {
      asked_ = true;
      for (const Child& child : children_) {
        child.end_for_others();
      }
    }
    if (seconds_until(kill_at_) == 0) {
      signal_all(SIGKILL);
    }
  }

  std::vector<Child>& children_;
  const PassedSignals& signals_;
  const WatchOptions options_;
  int code_ = 0;
  bool asked_ = false, asked_from_outside_ = false, orders_end_ = false;
  Deadline ask_at_, kill_at_;
};

}  // namespace

PassedSignals::PassedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGCHLD}) {
    sigaddset(&set, number);
  }
  std::signal(SIGPIPE, SIG_IGN);  // a machine that is gone takes no orders
  sigprocmask(SIG_BLOCK, &set, &before_);
  descriptor_ = Socket(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

PassedSignals::~PassedSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

WatchEnd watch(std::vector<Child>& children, const PassedSignals& signals,
               const WatchOptions& options) {
  return Watch(children, signals, options).run();
}

}  // namespace bloomery
