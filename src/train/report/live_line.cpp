#include "train/report/live_line.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/terminal.h"

namespace bloomery {
namespace {

constexpr int kWidestBar = 40, kNarrowestBar = 8;
constexpr std::chrono::milliseconds kInterval{100};

std::string repeated(std::string_view piece, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += piece;
  return text;
}

// Filled to eighths of a column where the terminal can show them.
std::string bar(double fraction, int width, const LiveStyle& style) {
  const int eighths = static_cast<int>(std::floor(fraction * width * 8));
  const int full = std::min(eighths / 8, width);
  if (!style.unicode) return "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
  static constexpr std::array<std::string_view, 8> kParts = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const std::string_view part = full < width ? kParts[static_cast<std::size_t>(eighths % 8)] : "";
  const int rest = width - full - (part.empty() ? 0 : 1);
  std::string text = repeated("█", full) + std::string(part);
  if (style.colour) return "\x1b[36m" + text + "\x1b[2m" + repeated("─", rest) + "\x1b[0m";
  return text + repeated("─", rest);
}

// What stands behind the bar; the last ones go first when there is no room.
std::vector<std::string> fields_by_importance(const LiveState& state) {
  std::vector<std::string> fields;
  if (std::isfinite(state.loss) && state.loss != 0) {
    fields.push_back(fmt::format("loss {:.4f}", state.loss));
  }
  if (state.seconds_left >= 0) fields.push_back(short_duration(state.seconds_left) + " left");
  if (state.tokens_per_second > 0) {
    fields.push_back(short_count(state.tokens_per_second) + " tokens/s");
  }
  if (state.utilisation) fields.push_back(fmt::format("MFU {:.1f}%", *state.utilisation * 100));
  if (state.memory_bytes) {
    fields.push_back(
        fmt::format("{:.1f} GiB", static_cast<double>(*state.memory_bytes) / 1073741824.0));
  }
  return fields;
}

}  // namespace

std::string short_duration(double seconds) {
  if (!(seconds >= 0)) return "?";
  const auto whole = static_cast<std::int64_t>(std::min(seconds, 3.15e11) + 0.5);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m {:02d}s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{}h {:02d}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}d {:02d}h", whole / 86400, whole / 3600 % 24);
}

std::string short_count(double value) {
  static constexpr std::array<const char*, 5> kPrefixes = {"", "k", "M", "G", "T"};
  std::size_t prefix = 0;
  while (std::abs(value) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const double size = std::abs(value);
  const int digits = prefix == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, digits, kPrefixes[prefix]);
}

std::string live_line(const LiveState& state, const LiveStyle& style) {
  const double fraction = state.train_iterations > 0
                              ? std::clamp(static_cast<double>(state.iteration) /
                                               static_cast<double>(state.train_iterations),
                                           0.0, 1.0)
                              : 0.0;
  const std::string head = fmt::format("{}/{} {:3d}%", state.iteration, state.train_iterations,
                                       static_cast<int>(std::floor(fraction * 100)));
  const std::string separator = style.unicode ? " · " : " | ";
  std::vector<std::string> fields = fields_by_importance(state);
  const int room = style.columns;
  const auto tail = [&] {
    std::string text;
    for (const std::string& field : fields) text += separator + field;
    return text;
  };
  const int around_bar = style.unicode ? 1 : 3;
  while (true) {
    const std::string text = tail();
    const int left = room - static_cast<int>(columns_of(head) + columns_of(text));
    if (left - around_bar >= kNarrowestBar) {
      return head + " " + bar(fraction, std::min(left - around_bar, kWidestBar), style) + text;
    }
    if (left >= 0) return head + text;
    if (fields.empty()) return head.substr(0, static_cast<std::size_t>(std::max(room, 0)));
    fields.pop_back();
  }
}

LiveWriter::LiveWriter(int descriptor) : descriptor_(descriptor), active_(is_terminal(descriptor)) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  style_.colour = wants_colour();
  std::string locale = variable("LC_ALL");
  if (locale.empty()) locale = variable("LC_CTYPE");
  if (locale.empty()) locale = variable("LANG");
  style_.unicode =
      locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

LiveWriter::~LiveWriter() { clear(); }

void LiveWriter::update(const LiveState& state) {
  if (!active_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_ && state.iteration < state.train_iterations) return;
  next_ = now + kInterval;
  // The last column stays free: some terminals wrap when it is written.
  style_.columns = static_cast<int>(terminal_columns(descriptor_)) - 1;
  write("\r\x1b[K" + live_line(state, style_));
  shown_ = true;
}

void LiveWriter::clear() {
  if (shown_) write("\r\x1b[K");
  shown_ = false;
  next_ = {};
}

void LiveWriter::write(const std::string& text) const {
  // A terminal that went away is no reason to stop training.
  [[maybe_unused]] const ssize_t written = ::write(descriptor_, text.data(), text.size());
}

}  // namespace bloomery
