// Ctrl-C and kill end a command in an orderly way, so that what it was writing is removed.
#pragma once

namespace bloomery {

// While it lives, SIGINT, SIGTERM and SIGHUP are noted instead of ending the process. One at a
// time. Further signals change nothing, because timeout(1) and batch systems send several; SIGQUIT
// and SIGKILL still end the process at once.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  static int signal();  // the first that came; 0: none
};

}  // namespace bloomery
