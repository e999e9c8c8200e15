#include "apps/generate/line_editor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

namespace bloomery {
namespace {

using State = LineBuffer::State;

const std::vector<std::string> kHistory = {"first", "second one"};

// The line after these keys, with | at the cursor.
std::string typed(const std::string& keys) {
  LineBuffer line(kHistory);
  for (const char key : keys) {
    EXPECT_EQ(line.take(key), State::typing);
  }
  return line.text().substr(0, line.cursor()) + "|" + line.text().substr(line.cursor());
}

TEST(LineBuffer, Keys) {
  EXPECT_EQ(typed("abc"), "abc|");
  EXPECT_EQ(typed("abc\x1B[D\x1B[DX"), "aX|bc");
  EXPECT_EQ(typed("abc\x01X\x1B[C"), "Xa|bc");
  EXPECT_EQ(typed("abc\x1B[H\x1B[3~\x05!"), "bc!|");
  EXPECT_EQ(typed("abc\x7F\x08z"), "az|");
  EXPECT_EQ(typed("one two  three\x17"), "one two  |");
  EXPECT_EQ(typed("one two\x1B[1;5D\x0B"), "one |");
  EXPECT_EQ(typed("one two\x02\x15"), "|o");
  EXPECT_EQ(typed("\x7F\x1B[D\x1B[3~"), "|");      // nothing to remove
  EXPECT_EQ(typed("a\x1B[200~b\x1BOPc"), "abc|");  // keys that mean nothing here
}

TEST(LineBuffer, CharactersOfSeveralBytes) {
  EXPECT_EQ(typed("\xC3\xA9\xE9\x89\x84x\x1B[D\x1B[D"), "\xC3\xA9|\xE9\x89\x84x");
  EXPECT_EQ(typed("\xC3\xA9\xE9\x89\x84\x7F"), "\xC3\xA9|");
}

TEST(LineBuffer, History) {
  EXPECT_EQ(typed("ty\x1B[A"), "second one|");
  EXPECT_EQ(typed("ty\x1B[A\x1B[A\x1B[A"), "first|");
  EXPECT_EQ(typed("ty\x1B[A\x1B[A\x1B[B\x1B[B\x1B[B"), "ty|");  // what was being typed comes back
}

TEST(LineBuffer, Ends) {
  EXPECT_EQ(LineBuffer(kHistory).take('\x04'), State::ended);
  EXPECT_EQ(LineBuffer(kHistory).take('\0'), State::ended);
  EXPECT_EQ(LineBuffer(kHistory).take('\x03'), State::cancelled);
  EXPECT_EQ(LineBuffer(kHistory).take('\r'), State::entered);
  EXPECT_EQ(typed("ab\x01\x04"), "|b");  // Ctrl-D in a line deletes
}

TEST(VisibleLine, MovesWithTheCursor) {
  EXPECT_EQ(visible_line("abcdef", 2, 10).text, "abcdef");
  EXPECT_EQ(visible_line("abcdef", 2, 10).column, 2u);
  const VisibleLine end = visible_line("abcdefghij", 10, 5);
  EXPECT_EQ(end.text, "ghij");
  EXPECT_EQ(end.column, 4u);
  const VisibleLine wide = visible_line("\xE9\x89\x84\xE9\x89\x84x", 6, 10);
  EXPECT_EQ(wide.column, 4u);
}

TEST(LineEditor, OnATerminal) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
    GTEST_SKIP() << "there are no pseudo-terminals here";
  }
  const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  termios by_key{};  // as the editor has it, so that keys typed ahead are not made into lines
  tcgetattr(terminal, &by_key);
  by_key.c_lflag &= ~static_cast<tcflag_t>(ICANON);
  tcsetattr(terminal, TCSANOW, &by_key);
  const std::string keys =
      "ac\x1B[Db\nnext\n\x1B[A\x1B[A\n\x04";  // three lines at once, and the end
  ASSERT_EQ(write(master, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  LineEditor editor(terminal, terminal);
  termios before{}, after{};
  tcgetattr(terminal, &before);
  EXPECT_EQ(editor.read("> "), "abc");
  EXPECT_EQ(editor.read("> "), "next");
  EXPECT_EQ(editor.read("> "), "abc");
  EXPECT_EQ(editor.read("> "), std::nullopt);
  tcgetattr(terminal, &after);
  EXPECT_EQ(before.c_lflag, after.c_lflag);
  std::string shown;
  char bytes[4096];
  fcntl(master, F_SETFL, O_NONBLOCK);
  for (ssize_t count; (count = read(master, bytes, sizeof bytes)) > 0;) {
    shown.append(bytes, static_cast<std::size_t>(count));
  }
  EXPECT_NE(shown.find("> abc"), std::string::npos) << shown;
  close(terminal);
  close(master);
}

}  // namespace
}  // namespace bloomery
