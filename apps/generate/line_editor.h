// A line typed on a terminal, with the usual keys: arrows, Home, End, Delete, Ctrl-A, -E, -K, -U,
// -W, and the earlier lines with up and down.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bloomery {

// The line while it grows: keys in, text and cursor out. It knows no terminal.
class LineBuffer {
 public:
  enum class State {
    typing,
    entered,
    ended,      // Ctrl-D on an empty line
    cancelled,  // Ctrl-C
  };

  // The history must outlive it; its last line is the nearest.
  explicit LineBuffer(const std::vector<std::string>& history);

  // The next byte from the keyboard. After another state than typing no more are taken.
  State take(char byte);

  const std::string& text() const { return text_; }
  std::size_t cursor() const { return cursor_; }  // bytes before it

 private:
  void control(char byte);
  void escape(char byte);
  void sequence(const std::string& keys);
  void show(std::size_t line);  // of the history; behind the last: what was being typed
  void erase(std::size_t begin, std::size_t end);
  std::size_t before(std::size_t place) const;  // where the character before it starts
  std::size_t after(std::size_t place) const;
  std::size_t word_before(std::size_t place) const;

  const std::vector<std::string>& history_;
  std::size_t line_;
  std::string text_, unfinished_, escape_;
  std::size_t cursor_ = 0;
  State state_ = State::typing;
};

// The part of a line that fits into `columns`, and the column of the cursor in it.
struct VisibleLine {
  std::string text;
  std::size_t column = 0;
};
VisibleLine visible_line(const std::string& text, std::size_t cursor, std::size_t columns);

class LineEditor {
 public:
  // Descriptors of a terminal.
  LineEditor(int in, int out) : in_(in), out_(out) {}

  // The next line; nothing when the input ends, by Ctrl-D or Ctrl-C.
  std::optional<std::string> read(const std::string& prompt);

 private:
  void draw(const std::string& prompt, const LineBuffer& line) const;
  void print(const std::string& text) const;

  int in_, out_;
  std::vector<std::string> history_;
  std::string typed_ahead_;
};

// Lines of standard input until it ends. A person at a terminal is asked, on the terminal even when
// output goes elsewhere, and can edit the line; other input is read as it is.
using NextLine = std::function<std::optional<std::string>()>;
NextLine typed_lines(const std::string& prompt);

}  // namespace bloomery
