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
[[noreturn]] void become(const ChildCommand& command, int input, int output, int errors) {
  setpgid(0, 0);  // signals of the terminal come through the launch alone
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  dup2(input, STDIN_FILENO);
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(errors >= 0 ? errors : output, STDERR_FILENO);
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
    : name_(command.name), prefix_(command.prefix), takes_orders_(command.takes_orders) {
  Pipe output = command.own_terminal ? Pipe() : make_pipe();
  Pipe errors = command.own_terminal || !command.errors ? Pipe() : make_pipe();
  Pipe orders = command.takes_orders ? make_pipe() : Pipe();
  if (output.read) {
    add_stream(std::move(output.read), command.output, STDOUT_FILENO);
  }
  if (errors.read) {
    add_stream(std::move(errors.read), *command.errors, STDERR_FILENO);
  }
  const Socket nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  process_ = fork();
  check(process_ >= 0, "cannot start ", name_, ": ", std::strerror(errno));
  if (process_ == 0) {
    become(command, orders.read ? orders.read.descriptor() : nothing.descriptor(),
           output.write ? output.write.descriptor() : -1,
           errors.write ? errors.write.descriptor() : -1);
  }
  setpgid(process_, process_);
  orders.read = Socket();  // a write must not wait for a reader that has ended
  orders_ = std::move(orders.write);
  if (orders_) {
    write_all(orders_.descriptor(), command.first_order);
  }
}

void Child::add_stream(Socket pipe, const OutputTarget& target, int screen) {
  set_blocking(pipe, false);
  Stream stream{std::move(pipe), Socket(), target.to_screen, screen, {}};
  if (!target.file.empty()) {
    stream.file = Socket(open(target.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    check(static_cast<bool>(stream.file), "the output of ", name_, ": cannot write ", target.file,
          ": ", std::strerror(errno));
  }
  streams_.push_back(std::move(stream));
}

std::vector<int> Child::outputs() const {
  std::vector<int> descriptors;
  for (const Stream& stream : streams_) {
    if (stream.pipe) {
      descriptors.push_back(stream.pipe.descriptor());
    }
  }
  return descriptors;
}

void Child::pass_on_output() {
  for (Stream& stream : streams_) {
    pass_on(stream);
  }
}

void Child::pass_on(Stream& stream) const {
  char bytes[1 << 16];
  while (stream.pipe) {
    const ssize_t count = read(stream.pipe.descriptor(), bytes, sizeof bytes);
    if (count < 0) {
      return;
    }
    if (count == 0) {
      stream.pipe = Socket();
      break;
    }
    stream.partial.append(bytes, static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = stream.partial.find('\n')) != std::string::npos;) {
      write_line(stream, stream.partial.substr(0, end + 1));
      stream.partial.erase(0, end + 1);
    }
  }
  if (!stream.pipe && !stream.partial.empty()) {
    write_line(stream, stream.partial + "\n");
    stream.partial.clear();
  }
}

// What a process left behind; others that it started may hold the pipe, and are not waited for.
void Child::finish_output() {
  pass_on_output();
  for (Stream& stream : streams_) {
    if (!stream.partial.empty()) {
      write_line(stream, stream.partial + "\n");
      stream.partial.clear();
    }
  }
}

void Child::write_line(const Stream& stream, const std::string& line) const {
  if (stream.file) {
    write_all(stream.file.descriptor(), line);
  }
  if (stream.to_screen) {
    write_all(stream.screen, prefix_ + line);
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

void Child::end_for_others() const {
  if (running_ && takes_orders_) {
    write_all(orders_.descriptor(), concat(-SIGTERM, "\n"));
  } else {
    signal(SIGTERM);
  }
}

}  // namespace bloomery
