#include "base/stop_signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>

namespace bloomery {
namespace {

using namespace std::chrono_literals;

constexpr int kStopped = 75, kNothingCame = 76;

// Runs the body in a process of its own that waits up to 5 s for a signal, then for `linger`, as a
// save would, and tells how it ended. The process has no terminal and does not ignore SIGHUP.
class Process {
 public:
  explicit Process(std::chrono::milliseconds grace, std::chrono::milliseconds linger,
                   const std::function<void()>& prepare = {}, bool saves = false) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    child_ = fork();
    if (child_ == 0) {
      ::signal(SIGHUP, SIG_DFL);
      dup2(open("/dev/null", O_RDWR | O_CLOEXEC), STDIN_FILENO);
      dup2(open("/dev/null", O_RDWR | O_CLOEXEC), STDERR_FILENO);
      if (prepare) prepare();
      const StopSignals signals("the test ends", grace);
      EXPECT_EQ(write(ends[1], "!", 1), 1);
      for (int turn = 0; turn < 500 && !StopSignals::came(); ++turn) {
        std::this_thread::sleep_for(10ms);
      }
      const auto work = saves ? std::make_unique<UninterruptedWork>() : nullptr;
      std::this_thread::sleep_for(linger);
      _exit(StopSignals::came() ? kStopped : kNothingCame);
    }
    char ready = 0;
    EXPECT_EQ(read(ends[0], &ready, 1), 1);
    close(ends[0]);
    close(ends[1]);
  }

  Process& send(int number) {
    kill(child_, number);
    std::this_thread::sleep_for(200ms);
    return *this;
  }
  // Sends it again and again: a busy machine may be late to notice the first.
  int code_after_many(int number) const {
    int status = 0;
    while (waitpid(child_, &status, WNOHANG) == 0) {
      kill(child_, number);
      std::this_thread::sleep_for(100ms);
    }
    return WEXITSTATUS(status);
  }
  int code() const {
    int status = 0;
    waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t child_ = 0;
};

void at_terminal() {
  const int primary = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_TRUE(primary >= 0 && grantpt(primary) == 0 && unlockpt(primary) == 0);
  dup2(open(ptsname(primary), O_RDWR | O_NOCTTY), STDIN_FILENO);
}

TEST(StopSignals, EachOfThemIsAWishToStop) {
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGHUP}) {
    EXPECT_EQ(Process(10s, 0ms).send(number).code(), kStopped) << number;
  }
}

TEST(StopSignals, FurtherOnesWithinTheGracePeriodChangeNothing) {
  EXPECT_EQ(Process(10s, 1500ms)
                .send(SIGTERM)
                .send(SIGTERM)
                .send(SIGHUP)
                .send(SIGINT)
                .send(SIGINT)
                .code(),
            kStopped);
}

TEST(StopSignals, AfterTheGracePeriodAnotherEndsAtOnce) {
  EXPECT_EQ(Process(100ms, 10s).send(SIGTERM).code_after_many(SIGTERM), 128 + SIGTERM);
}

// As Slurm does: SIGTERM, and again before SIGKILL.
TEST(StopSignals, NoneEndsASave) {
  EXPECT_EQ(Process(0ms, 800ms, {}, true).send(SIGTERM).send(SIGTERM).send(SIGINT).code(),
            kStopped);
}

TEST(StopSignals, CtrlCAtATerminalEndsASave) {
  EXPECT_EQ(Process(100ms, 10s, at_terminal, true).send(SIGTERM).code_after_many(SIGINT),
            128 + SIGINT);
}

TEST(StopSignals, IgnoredHangupStaysIgnored) {
  EXPECT_EQ(Process(10s, 0ms, [] { ::signal(SIGHUP, SIG_IGN); }).send(SIGHUP).send(SIGTERM).code(),
            kStopped);
  EXPECT_EQ(
      Process(0ms, 400ms, [] { ::signal(SIGHUP, SIG_IGN); }).send(SIGTERM).send(SIGHUP).code(),
      kStopped)
      << "even one that would end at once";
}

TEST(StopSignals, CtrlCTwiceAtATerminalEndsAtOnce) {
  EXPECT_EQ(Process(20s, 10s, at_terminal).code_after_many(SIGINT), 128 + SIGINT);
  EXPECT_EQ(Process(10s, 1200ms, at_terminal).send(SIGTERM).send(SIGINT).code(), kStopped);
}

}  // namespace
}  // namespace bloomery
