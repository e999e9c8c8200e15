// Which library, algorithm and blocks serve which product. A job decides once (by timing, by rule,
// or from what an earlier run stored), because another choice may give other bits.
#pragma once

#include <compare>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "device/device.h"
#include "ops/fp8/fp8_format.h"
#include "tensor/dtype.h"

namespace bloomery {

// What a choice may depend on.
struct MatmulKey {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, add = false;
  DType input = DType::fp32, output = DType::fp32;
  int epilogue = 0;   // cuBLASLt's number; 0 on the CPU, where it makes no difference
  int alignment = 0;  // common alignment of the pointers in bytes; 0 on the CPU, likewise
  Fp8Format a_format = Fp8Format::none, b_format = Fp8Format::none;  // of inputs of 8 bits
  bool fast_sums = false;                                            // likewise

  auto operator<=>(const MatmulKey&) const = default;
  std::string text() const;  // one word
};

// The choices of a device, as text: every device kind writes and reads its own. A service.
class MatmulChoices {
 public:
  explicit MatmulChoices(Device& device);

  // Off: a fixed rule decides, the same in every run. On: candidates are timed at first use.
  bool timing = false;
  // On: what is timed goes to a file of this kind of device and version of its library, and what is
  // there already is not timed again. So later runs make the same choices as the first.
  bool lasting = false;

  // The choice for a key, empty when there is none yet.
  std::string find(const MatmulKey& key) const;
  void store(const MatmulKey& key, const std::string& choice);
  // Choices that were timed in earlier runs, for keys without one; and to which file to add this
  // run's. What cannot be read or written is timed again another time.
  void keep_in(const std::filesystem::path& file);
  void store_timed(const MatmulKey& key, const std::string& choice);
  // Notes that the stored choice for a key cannot be used here (another machine, or a method that
  // this program no longer has), so that resuming can say so: "KEY CHOICE".
  void reject(const MatmulKey& key);
  const std::vector<std::string>& rejected() const { return rejected_; }

  // One line per choice, sorted: "KEY CHOICE". `load` adds to what is there; it comes before the
  // first product, since shapes already planned keep their plan.
  std::vector<std::string> lines() const;
  void load(const std::vector<std::string>& lines);

 private:
  std::string device_;  // first word of keys: a choice for a CPU says nothing about a GPU
  std::map<std::string, std::string> choices_;  // that this job has made or was given
  std::map<std::string, std::string> earlier_;  // of the file
  std::filesystem::path file_;
  std::vector<std::string> rejected_;
};

}  // namespace bloomery
