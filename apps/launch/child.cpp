#include "apps/launch/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace bloomery {
namespace {

struct Pipe {
  Socket read, write;
};

Pipe make_pipe() {
  int ends[2];
  check(pipe2(ends, O_CLOEXEC) == 0, "no pipe for the output of a rank: ", std::strerror(errno));
  return {Socket(ends[0]), Socket(ends[1])};
}

// In the new process, where nothing but system calls is safe once another thread exists; a launch
// has none.
[[noreturn]] void become(const ChildCommand& command, int input, int output) {
  setpgid(0, 0);  // signals of the terminal come through the launch alone
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  dup2(input, STDIN_FILENO);
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  if (command.keep_open >= 0) {
    fcntl(command.keep_open, F_SETFD, 0);
  }
  for (const auto& [name, value] : command.variables) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<char*> words;
  for (const std::string& word : command.words) {
    words.push_back(const_cast<char*>(word.c_str()));
  }
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const std::string problem =
      concat("bloomery launch: cannot start ", command.words[0], ": ", std::strerror(errno), "\n");
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, problem.data(), problem.size());
  _exit(errno == ENOENT ? 127 : 126);
}

void write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) {
      return;  // whoever read it is gone; the ranks go on
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
}

}  // namespace

Child::Child(const ChildCommand& command)
    : name_(command.name),
      prefix_(command.prefix),
      to_screen_(command.to_screen),
      takes_orders_(command.takes_orders) {
  Pipe output = command.own_terminal ? Pipe() : make_pipe();
  Pipe orders = command.takes_orders ? make_pipe() : Pipe();
  if (!command.file.empty()) {
    file_ = Socket(open(command.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    check(static_cast<bool>(file_), "--output-folder: cannot write ", command.file, ": ",
          std::strerror(errno));
  }
  const Socket nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  process_ = fork();
  check(process_ >= 0, "cannot start ", name_, ": ", std::strerror(errno));
  if (process_ == 0) {
    become(command, orders.read ? orders.read.descriptor() : nothing.descriptor(),
           output.write ? output.write.descriptor() : -1);
  }
  setpgid(process_, process_);
  orders.read = Socket();  // a write must not wait for a reader that has ended
  output_ = std::move(output.read);
  orders_ = std::move(orders.write);
  if (output_) {
    set_blocking(output_, false);
  }
  if (orders_) {
    write_all(orders_.descriptor(), command.first_order);
  }
}

void Child::pass_on_output() {
  char bytes[1 << 16];
  while (output_) {
    const ssize_t count = read(output_.descriptor(), bytes, sizeof bytes);
    if (count < 0) {
      return;
    }
    if (count == 0) {
      output_ = Socket();
      break;
    }
    partial_.append(bytes, static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = partial_.find('\n')) != std::string::npos;) {
      write_line(partial_.substr(0, end + 1));
      partial_.erase(0, end + 1);
    }
  }
  if (!output_ && !partial_.empty()) {
    write_line(partial_ + "\n");
    partial_.clear();
  }
}

// What a process left behind; others that it started may hold the pipe, and are not waited for.
void Child::finish_output() {
  pass_on_output();
  if (!partial_.empty()) {
    write_line(partial_ + "\n");
    partial_.clear();
  }
}

void Child::write_line(std::string line) {
  if (file_) {
    write_all(file_.descriptor(), line);
  }
  if (to_screen_) {
    write_all(STDOUT_FILENO, prefix_ + line);
  }
}

void Child::signal(int number) const {
  if (!running_) {
    return;
  }
  if (takes_orders_ && number != SIGKILL) {
    write_all(orders_.descriptor(), concat(number, "\n"));
  } else {
    kill(-process_, number);
    kill(process_, number);  // before it has its own group
  }
}

}  // namespace bloomery
