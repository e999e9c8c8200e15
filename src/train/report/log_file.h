// A file that the log of a run grows. No failure of it ends training: what cannot be written is
// kept, up to a bound, and written when that works again.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <string>

namespace bloomery {

// Takes a line for people.
using Warn = std::function<void(const std::string&)>;

class LogFile {
 public:
  struct Settings {
    // Asked whenever a file is to be opened: at first, and again when writing to it failed or
    // someone moved it away. A file that is there is appended to.
    std::function<std::filesystem::path()> name;
    std::string header = {};  // starts every new file
    bool lines = false;       // records are lines: one that was cut short is ended before the next
    Warn warn = {};           // told once per outage that it began, and once that it is over
    std::size_t most_waiting = 16 << 20;  // bytes; beyond it the oldest records are given up
  };

  explicit LogFile(Settings settings);
  ~LogFile();  // tries once more
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  void add(std::string record);
  // Hands the records to the system, which keeps them whatever becomes of this process. False: they
  // wait for the next call. Throws nothing.
  bool flush();
  const std::filesystem::path& path() const { return path_; }  // empty before the first file

 private:
  std::string open();  // what comes before the first record
  void close();
  bool is_at_its_name() const;
  void write(const std::string& bytes);
  void take_back(std::size_t bytes) const;

  Settings settings_;
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool is_new_ = false;  // nothing was written to it yet
  std::deque<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::int64_t given_up_ = 0;  // records
  bool failing_ = false;
};

}  // namespace bloomery
