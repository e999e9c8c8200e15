// Launches of a step once more, in its order and with nothing between them, for long enough that a
// GPU keeps the clock at which it runs for hours.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/bench/rows.h"
#include "apps/bench/step_work.h"

namespace bloomery {

// Time of a pass, which runs for `least` seconds before its time counts and for as long after that.
double sustained_seconds(Stream& stream, const std::function<void()>& pass, double least);

class Replay {
 public:
  // Launches that do the same work on other operands are of one kind.
  struct Kind {
    std::string text;
    double flops = 0;  // of one launch; 0: not said
    int count = 0;     // in a step
    double seconds = 0;
    std::function<void()> launch;
  };

  explicit Replay(Stream& stream) : setup_(stream, DType::fp32) {}
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // `make` is called for the first of a kind.
  using Make = std::function<std::function<void()>(BenchSetup&)>;
  void add(const std::string& kind, double flops, const ProfileRow& row, const Make& make);

  // Measures, and divides the time among the kinds and the rows of a profile.
  double run(double least, std::map<ProfileRow, double>& by_row);
  const std::vector<Kind>& kinds() const { return kinds_; }

 private:
  struct Launch {
    std::size_t kind;
    ProfileRow row;
  };
  std::vector<double> times_in_one_pass();

  BenchSetup setup_;  // has the operands
  std::vector<Kind> kinds_;
  std::map<std::string, std::size_t> numbers_;
  std::vector<Launch> order_;
};

void add_products(Replay& replay, const StepWork& work);
void add_attention(Replay& replay, const StepWork& work);

}  // namespace bloomery
