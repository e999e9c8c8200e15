#include "apps/generate/line_editor.h"

#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <memory>

#include "base/terminal.h"

namespace bloomery {
namespace {

// The terminal hands over every key as it comes while this lives.
class KeyByKey {
 public:
  explicit KeyByKey(int terminal) : terminal_(terminal) {
    changed_ = tcgetattr(terminal, &before_) == 0;
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    changed_ = changed_ && tcsetattr(terminal, TCSADRAIN, &now) == 0;
  }
  ~KeyByKey() {
    if (changed_) {
      tcsetattr(terminal_, TCSADRAIN, &before_);
    }
  }
  KeyByKey(const KeyByKey&) = delete;
  KeyByKey& operator=(const KeyByKey&) = delete;

 private:
  int terminal_;
  bool changed_ = false;
  termios before_{};
};

}  // namespace

void LineEditor::print(const std::string& text) const {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(out_, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) {
      return;
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
}

void LineEditor::draw(const std::string& prompt, const LineBuffer& line) const {
  const std::size_t wide = terminal_columns(out_), used = prompt.size() + 1;
  const VisibleLine shown =
      visible_line(line.text(), line.cursor(), wide > used + 8 ? wide - used : 8);
  const std::size_t column = prompt.size() + shown.column;
  print("\r" + prompt + shown.text + "\x1B[K\r" +
        (column > 0 ? "\x1B[" + std::to_string(column) + "C" : ""));
}

std::optional<std::string> LineEditor::read(const std::string& prompt) {
  const KeyByKey keys(in_);
  LineBuffer line(history_);
  LineBuffer::State state = LineBuffer::State::typing;
  while (true) {
    while (!typed_ahead_.empty() && state == LineBuffer::State::typing) {
      state = line.take(typed_ahead_.front());
      typed_ahead_.erase(0, 1);
    }
    draw(prompt, line);
    if (state != LineBuffer::State::typing) {
      break;
    }
    char bytes[256];
    const ssize_t count = ::read(in_, bytes, sizeof bytes);
    if (count > 0) {
      typed_ahead_.append(bytes, static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      state = LineBuffer::State::ended;
    }
  }
  print("\n");
  if (state != LineBuffer::State::entered) {
    return std::nullopt;
  }
  if (!line.text().empty() && (history_.empty() || history_.back() != line.text())) {
    history_.push_back(line.text());
  }
  return line.text();
}

NextLine typed_lines(const std::string& prompt) {
  const int terminal = is_terminal(STDOUT_FILENO) ? STDOUT_FILENO : STDERR_FILENO;
  if (!is_terminal(STDIN_FILENO) || !is_terminal(terminal)) {
    return []() -> std::optional<std::string> {
      std::string line;
      return std::getline(std::cin, line) ? std::optional(line) : std::nullopt;
    };
  }
  return [editor = std::make_shared<LineEditor>(STDIN_FILENO, terminal), prompt] {
    return editor->read(prompt);
  };
}

}  // namespace bloomery
