// Standard input in a test.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <sstream>
#include <string>

namespace bloomery {

// While it lives, standard input is no terminal and std::cin says these lines.
class TypedLines {
 public:
  explicit TypedLines(const std::string& lines)
      : lines_(lines), buffer_(std::cin.rdbuf(lines_.rdbuf())), input_(dup(STDIN_FILENO)) {
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    close(nothing);
  }
  ~TypedLines() {
    dup2(input_, STDIN_FILENO);
    close(input_);
    std::cin.rdbuf(buffer_);
    std::cin.clear();
  }
  TypedLines(const TypedLines&) = delete;
  TypedLines& operator=(const TypedLines&) = delete;

 private:
  std::istringstream lines_;
  std::streambuf* buffer_;
  int input_;
};

}  // namespace bloomery
