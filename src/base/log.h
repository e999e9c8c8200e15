// Log lines for people, on standard error, tagged with the rank that speaks when there are several.
#pragma once

#include <string>

#include "base/error.h"

namespace bloomery {

enum class LogLevel { debug, info, warning, error };

// A log belongs to a rank; copies are cheap and write to the same place.
class Log {
 public:
  explicit Log(int rank = 0, int num_ranks = 1, LogLevel threshold = LogLevel::info);

  template <class... Parts>
  void info(const Parts&... parts) const {
    write(LogLevel::info, concat(parts...));
  }
  template <class... Parts>
  void warning(const Parts&... parts) const {
    write(LogLevel::warning, concat(parts...));
  }
  template <class... Parts>
  void error(const Parts&... parts) const {
    write(LogLevel::error, concat(parts...));
  }

  void write(LogLevel level, const std::string& line) const;

 private:
  std::string tag_;
  LogLevel threshold_;
};

}  // namespace bloomery
