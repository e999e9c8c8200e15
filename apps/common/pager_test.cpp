#include "apps/common/pager.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace bloomery {
namespace {

std::string page(std::size_t columns) { return std::string(columns, 'x') + "\nline\nline\nline\n"; }

// What a terminal of 40 columns and some rows shows of the page, with this PAGER.
std::string shown(const char* pager, unsigned short rows) {
  const int primary = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_TRUE(grantpt(primary) == 0 && unlockpt(primary) == 0);
  winsize size{};
  size.ws_col = 40;
  size.ws_row = rows;
  const int terminal = open(ptsname(primary), O_RDWR | O_NOCTTY);
  ioctl(terminal, TIOCSWINSZ, &size);
  const pid_t child = fork();
  if (child == 0) {
    setenv("TERM", "xterm", 1);
    setenv("PAGER", pager, 1);
    dup2(terminal, STDIN_FILENO);
    dup2(terminal, STDOUT_FILENO);
    show_page(std::cout, page);
    std::cout.flush();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(primary, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  close(primary);
  std::erase(text, '\r');
  return text;
}

TEST(Pager, APageThatIsHigherThanTheTerminalGoesThroughIt) {
  EXPECT_EQ(shown("sed s/line/paged/", 4), std::string(40, 'x') + "\npaged\npaged\npaged\n");
  EXPECT_EQ(shown("sed s/line/paged/", 20), page(40));
}

TEST(Pager, WithoutAPagerThePageIsWritten) {
  EXPECT_EQ(shown("", 4), page(40));
  EXPECT_EQ(shown("no-such-pager-here 2> /dev/null", 4), page(40));
}

TEST(Pager, ElsewhereLinesHaveEightyColumns) {
  std::ostringstream out;
  show_page(out, page);
  EXPECT_EQ(out.str(), page(80));
}

}  // namespace
}  // namespace bloomery
