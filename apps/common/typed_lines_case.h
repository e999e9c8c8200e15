// Standard input in a test.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <istream>
#include <sstream>
#include <string>

namespace bloomery {

// While it lives, standard input is no terminal and `in`, std::cin, says these lines.
class TypedLines {
 public:
  TypedLines(std::istream& in, const std::string& lines)
      : in_(in), lines_(lines), buffer_(in.rdbuf(lines_.rdbuf())), input_(dup(STDIN_FILENO)) {
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    close(nothing);
  }
  ~TypedLines() {
    dup2(input_, STDIN_FILENO);
    close(input_);
    in_.rdbuf(buffer_);
    in_.clear();
  }
  TypedLines(const TypedLines&) = delete;
  TypedLines& operator=(const TypedLines&) = delete;

 private:
  std::istream& in_;
  std::istringstream lines_;
  std::streambuf* buffer_;
  int input_;
};

}  // namespace bloomery
