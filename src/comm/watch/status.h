// Where a rank stands, as it tells others: its place in the work and its last calls. What a report
// of a hang is made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

struct CallRecord {
  enum class State : std::uint8_t { called, waiting, done };
  std::string text;            // "all_reduce sum of 7 fp32"
  std::string group;           // "reductions over data"
  std::vector<int> members;    // world ranks that take part
  std::uint32_t group_id = 0;  // the same for all its members
  std::int64_t number = -1;    // of the group's collective calls; -1: it is none
  std::string position;        // "iteration 12, backward of micro-batch 3, chunk 0"
  State state = State::called;
  double called_ago = 0;  // seconds before the status was taken
  double waited = 0;      // seconds, until it was done or until the status was taken
};

struct RankStatus {
  int rank = 0;
  std::string host;
  std::int64_t process = 0;
  std::string position;           // at present
  std::vector<CallRecord> calls;  // the oldest first

  std::string bytes() const;
  static RankStatus from(std::string_view bytes);  // an Error if it is none

  const CallRecord* waiting() const;  // the oldest call that is not done, if any
};

}  // namespace bloomery
