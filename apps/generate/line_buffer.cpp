#include <algorithm>

#include "apps/generate/line_editor.h"
#include "base/terminal.h"

namespace bloomery {
namespace {

enum Key : char {
  kEndTypedAhead = 0,  // what a terminal makes of Ctrl-D while nobody reads
  kHome = 1,           // Ctrl-A
  kLeft = 2,           // Ctrl-B
  kCancel = 3,         // Ctrl-C
  kEnd = 4,            // Ctrl-D
  kToEnd = 5,          // Ctrl-E
  kRight = 6,          // Ctrl-F
  kBackspace = 8,
  kCutEnd = 11,    // Ctrl-K
  kNext = 14,      // Ctrl-N
  kPrevious = 16,  // Ctrl-P
  kCutStart = 21,  // Ctrl-U
  kCutWord = 23,   // Ctrl-W
  kEscape = 27,
  kDelete = 127
};

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

std::size_t next_place(const std::string& text, std::size_t place) {
  do {
    ++place;
  } while (place < text.size() && continues(text[place]));
  return std::min(place, text.size());
}

std::size_t width(std::string_view text, std::size_t begin, std::size_t end) {
  return columns_of(text.substr(begin, end - begin));
}

}  // namespace

LineBuffer::LineBuffer(const std::vector<std::string>& history)
    : history_(history), line_(history.size()) {}

LineBuffer::State LineBuffer::take(char byte) {
  if (state_ != State::typing) {
    return state_;
  }
  if (!escape_.empty()) {
    escape(byte);
  } else if (byte == '\n' || byte == '\r') {
    state_ = State::entered;
  } else if (static_cast<unsigned char>(byte) < ' ' || byte == kDelete) {
    control(byte);
  } else {
    text_.insert(cursor_++, 1, byte);
  }
  return state_;
}

void LineBuffer::control(char byte) {
  switch (byte) {
    case kHome:
      cursor_ = 0;
      break;
    case kLeft:
      cursor_ = before(cursor_);
      break;
    case kCancel:
      state_ = State::cancelled;
      break;
    case kEnd:
    case kEndTypedAhead:
      if (text_.empty()) {
        state_ = State::ended;
      }
      erase(cursor_, after(cursor_));
      break;
    case kToEnd:
      cursor_ = text_.size();
      break;
    case kRight:
      cursor_ = after(cursor_);
      break;
    case kBackspace:
    case kDelete:
      erase(before(cursor_), cursor_);
      break;
    case kCutEnd:
      erase(cursor_, text_.size());
      break;
    case kNext:
      show(line_ + 1);
      break;
    case kPrevious:
      show(line_ == 0 ? 0 : line_ - 1);
      break;
    case kCutStart:
      erase(0, cursor_);
      break;
    case kCutWord:
      erase(word_before(cursor_), cursor_);
      break;
    case kEscape:
      escape_ = byte;
      break;
    default:
      break;
  }
}

// ESC [ or ESC O, parameters, and a letter or ~ at the end.
void LineBuffer::escape(char byte) {
  escape_ += byte;
  const bool opened = escape_.size() == 2 && (byte == '[' || byte == 'O');
  const bool parameter = escape_.size() > 2 && byte >= ' ' && byte < '@';
  if (!opened && !parameter) {
    const std::string keys = std::move(escape_);
    escape_.clear();
    sequence(keys);
  }
}

void LineBuffer::sequence(const std::string& keys) {
  const char last = keys.back();
  const std::string inside = keys.size() > 3 ? keys.substr(2, keys.size() - 3) : "";
  const bool by_word = inside.ends_with(";5") || inside.ends_with(";3");
  if (last == 'A') {
    control(kPrevious);
  } else if (last == 'B') {
    control(kNext);
  } else if (last == 'C') {
    cursor_ = after(cursor_);
    while (by_word && cursor_ < text_.size() && text_[cursor_] != ' ') {
      cursor_ = after(cursor_);
    }
  } else if (last == 'D') {
    cursor_ = by_word ? word_before(cursor_) : before(cursor_);
  } else if (last == 'H' || inside == "1" || inside == "7") {
    control(kHome);
  } else if (last == 'F' || inside == "4" || inside == "8") {
    control(kToEnd);
  } else if (last == '~' && inside == "3") {
    erase(cursor_, after(cursor_));
  }
}

void LineBuffer::show(std::size_t line) {
  if (line > history_.size()) {
    return;
  }
  if (line_ == history_.size()) {
    unfinished_ = text_;
  }
  line_ = line;
  text_ = line < history_.size() ? history_[line] : unfinished_;
  cursor_ = text_.size();
}

void LineBuffer::erase(std::size_t begin, std::size_t end) {
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

std::size_t LineBuffer::before(std::size_t place) const {
  while (place > 0 && continues(text_[--place])) {
  }
  return place;
}

std::size_t LineBuffer::after(std::size_t place) const {
  return place < text_.size() ? next_place(text_, place) : place;
}

std::size_t LineBuffer::word_before(std::size_t place) const {
  while (place > 0 && text_[place - 1] == ' ') {
    --place;
  }
  while (place > 0 && text_[place - 1] != ' ') {
    --place;
  }
  return place;
}

VisibleLine visible_line(const std::string& text, std::size_t cursor, std::size_t columns) {
  std::size_t first = 0;
  while (width(text, first, cursor) >= columns && first < cursor) {
    first = next_place(text, first);
  }
  const std::string_view shown = first_columns(std::string_view(text).substr(first), columns);
  return {std::string(shown), width(text, first, cursor)};
}

}  // namespace bloomery
