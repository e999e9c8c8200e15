// The many small kernels by which a few sequences get their next token, as one kernel that stays on
// the GPU. Each of its blocks knows the weights it will multiply by, whatever the results before,
// so that it streams them from memory without a pause, and the phases wait only for each other. It
// takes products of few rows with the norm or the attention in front of them and the gate behind;
// what else a step has is launched as ever. GPUs from sm_90 on, 16-bit numbers, weights in 16 bits
// or codes of bytes.
#pragma once

#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "device/collector.h"
#include "generate/resident/phases.h"
#include "ops/activation/activation.h"
#include "ops/cache/cached_attention.h"
#include "ops/matmul/matmul.h"
#include "ops/norm/norm.h"
#include "ops/quantized/quantized_product.h"
#include "ops/rotary/rotary.h"

namespace bloomery {

class ResidentSteps final : public Collector {
 public:
  // Whether this GPU and dtype, and steps of so many rows, can be run so.
  static bool possible(const Device& device, DType dtype, std::int64_t rows);
  // Of steps on the stream, which must outlive this. A graph captured of one needs this object.
  ResidentSteps(Stream& stream, DType dtype, std::int64_t rows);

  // Runs the work, a step of `rows` tokens that needs no gradients. Everything it computes is
  // computed, but that qkv, after attention, may or may not be turned by positions. No two graphs
  // of it may be in use at a time, and outside of a capture it waits for the stream.
  void run(const std::function<void()>& work);

  bool take(const std::type_info& type, const void* kernel) override;
  void flush() override;

  // Of the last run(): how many phases it had, and how many kernels were launched by themselves.
  int num_phases() const { return num_phases_; }
  int num_single() const { return num_single_; }

 private:
  using Kernel =
      std::variant<Matmul, QuantizedProduct, NormForward, GatedForward, Rotary, CachedAttention>;
  bool fits(const Matmul& k) const;
  bool fits(const QuantizedProduct& k) const;
  bool fits(const NormForward& k) const;
  bool fits(const GatedForward& k) const;
  bool fits(const Rotary& k) const;
  bool fits(const CachedAttention& k) const;
  template <class K>
  const K* at(std::size_t i) const;
  bool set_product(resident::Product& p, std::size_t i) const;
  std::size_t add_phases(std::size_t first);
  std::optional<resident::Attention> match_attention(std::size_t first, std::size_t& next);
  void divide_keys(resident::Places& places);
  bool same_places(const CachedAttention& attention, const Rotary* rotary);
  const double* table(const RotaryTable& table);
  void connect_phases();
  void launch_phases();

  Stream& stream_;
  Stream copies_;
  const DType dtype_;
  const std::int64_t rows_;
  std::vector<Kernel> taken_;
  std::vector<resident::Phase> phases_;
  std::vector<RotaryTable> tables_;
  // For steps that run at once, and for the one in a graph.
  struct Room {
    Tensor phases, tables;
    std::int64_t num_phases = 0;
  };
  Room rooms_[2];
  Room* room_ = nullptr;
  Tensor partials_;                                 // of attention, zero where nothing was written
  resident::Places places_;                         // of the attention in phases_
  QuantizedFormat format_ = QuantizedFormat::none;  // of the codes in phases_
  // int32 [2]: of blocks where they meet, zero before and after; and the number of the last phase.
  Tensor arrivals_;
  Tensor words_;  // of results, for phases in turns (connect_phases)
  int num_phases_ = 0, num_single_ = 0;
};

namespace resident {

struct Launch {
  DType dtype;
  int rows;
  const Phase* phases;
  int num_phases;
  std::uint32_t* arrivals;
  Places places;
  QuantizedFormat format = QuantizedFormat::none;  // of weights that are codes
  int tile_bytes = 16;                             // of the largest tile
  int stream_bytes = 0;                            // of the rows that norms keep
  int input_bytes = 0;                             // of the largest input of a product
  int num_sums = kKeptSums;
};
void launch(Stream& stream, const Launch& launch);
int num_blocks(const Device& device);
bool is_capturing(const Stream& stream);
// Copies, whatever is being captured, and waits.
void upload(Stream& stream, void* to, const void* from, std::size_t bytes);

}  // namespace resident
}  // namespace bloomery
