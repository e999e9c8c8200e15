#include "generate/resident/resident.h"

#include <algorithm>
#include <optional>

namespace bloomery {

using resident::NormInput;
using resident::Phase;
using resident::Product;

namespace {

constexpr std::int64_t kMaxPhases = 2048, kMaxTables = 4, kWordPlaces = 3;
constexpr std::int64_t kTableBytes = kMaxRotaryPairs * sizeof(double);

bool aligned(std::initializer_list<const void*> pointers) {
  return std::all_of(pointers.begin(), pointers.end(), [](const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
  });
}

bool is_row_length(std::int64_t k, std::int64_t rows) {
  return k > 0 && k % resident::kStepColumns == 0 && rows * k <= resident::kMaxInput;
}

NormInput norm_input(const NormForward& k) {
  return {.stream = k.stream.data,
          .pending = k.pending.data,
          .gain = k.gain.data,
          .bias = k.bias.data,
          .sum = k.out.data,
          .y = k.y.data,
          .epsilon = k.options.epsilon,
          .rms = k.options.kind == NormKind::rms,
          .one_plus_gain = k.options.one_plus_gain};
}

void set_operands(Product& p, const Matmul& k) {
  const MatmulSizes sizes = checked_sizes(k);
  p.b = k.b.data;
  p.fp32_result = k.d.dtype == DType::fp32;
  p.n = static_cast<int>(sizes.n);
  p.k = static_cast<int>(sizes.k);
  p.row_bytes = 2 * p.k;
}

void set_operands(Product& p, const QuantizedProduct& k) {
  p.format = k.format;
  p.b = k.codes.data;
  p.scales = k.scales.data;
  p.n = static_cast<int>(k.codes.rows());
  p.k = static_cast<int>(k.a.columns());
  p.row_bytes = p.k;
}

// Tiles of as many columns as fit; of codes, which take half the memory, twice as many.
void divide_columns(Product& p) {
  constexpr int kUnit = resident::kWarps * resident::kStepColumns;
  const int most = resident::kMaxChunk * (p.format == QuantizedFormat::none ? 1 : 2);
  p.chunk = std::min(most, (p.k + kUnit - 1) / kUnit * kUnit);
}

// Blocks have about as many rows, and so have their tiles.
void divide_rows(Product& p, int count, int num_blocks) {
  p.block_rows = count / num_blocks;
  p.extra = count % num_blocks;
  const int most = p.block_rows + (p.extra > 0 ? 1 : 0);
  const int tiles = (most + resident::kTileRows - 1) / resident::kTileRows;
  p.tile_rows = (most + tiles - 1) / tiles;
}

// Sums that a block keeps until the end where a gate needs both halves, at most.
int sums_of_halves(const Product& p, std::int64_t rows, int num_blocks) {
  const int pairs = p.n / 2 / num_blocks + 1;
  return 2 * pairs * static_cast<int>(rows == 3 ? 4 : rows);  // the kernel has no three rows
}

// Whether a block can keep the sums of both halves until the end.
bool keeps_halves(const Product& p, std::int64_t rows, int num_blocks) {
  return p.n % 2 == 0 && p.activation == Activation::none && !p.fp32_result &&
         sums_of_halves(p, rows, num_blocks) <= resident::kMostKeptSums;
}

// The result that the next phase may take as words, or null.
const void* result_in_words(const Phase& phase, std::int64_t rows) {
  if (!phase.is_product) {
    return phase.attention.out;
  }
  const Product& p = phase.product;
  const std::int64_t width = p.gated != nullptr ? p.n / 2 : p.n;
  const bool fits = !p.fp32_result && p.block_rows > 0 && rows * width <= resident::kMaxWords;
  return !fits ? nullptr : p.gated != nullptr ? p.gated : p.d;
}

}  // namespace

bool ResidentSteps::possible(const Device& device, DType dtype, std::int64_t rows) {
  return (dtype == DType::bf16 || dtype == DType::fp16) && rows >= 1 &&
         rows <= resident::kMaxRows && resident::num_blocks(device) > 0;
}

ResidentSteps::ResidentSteps(Stream& stream, DType dtype, std::int64_t rows)
    : stream_(stream),
      copies_(stream.device()),
      dtype_(dtype),
      rows_(rows),
      arrivals_(Tensor::zeros(copies_, DType::int32, {2})),
      words_(Tensor::zeros(copies_, DType::int32, {kWordPlaces, resident::kMaxWords})) {
  for (Room& room : rooms_) {
    room.phases = Tensor::empty(copies_, DType::uint8,
                                {kMaxPhases * static_cast<std::int64_t>(sizeof(Phase))});
    room.tables = Tensor::empty(copies_, DType::uint8, {kMaxTables * kTableBytes});
  }
  copies_.synchronize();
}

void ResidentSteps::run(const std::function<void()>& work) {
  const bool capturing = resident::is_capturing(stream_);
  if (!capturing) {
    stream_.synchronize();  // a step that runs reads what the next one writes
  }
  room_ = &rooms_[capturing ? 1 : 0];
  room_->num_phases = 0;
  num_phases_ = num_single_ = 0;
  tables_.clear();
  const auto end = [&] {
    taken_.clear();
    phases_.clear();
    places_ = {};
    format_ = QuantizedFormat::none;
    stream_.set_collector(nullptr);
    stream_.memory()->hold(false);
  };
  stream_.memory()->hold(true);
  stream_.set_collector(this);
  try {
    work();
    flush();
  } catch (...) {
    end();
    throw;
  }
  end();
}

bool ResidentSteps::take(const std::type_info& type, const void* kernel) {
  const auto add = [&]<class K>(const K& k) {
    const bool taken = fits(k);
    if (taken) {
      taken_.emplace_back(k);
    }
    return taken;
  };
  return type == typeid(Matmul)             ? add(*static_cast<const Matmul*>(kernel))
         : type == typeid(QuantizedProduct) ? add(*static_cast<const QuantizedProduct*>(kernel))
         : type == typeid(NormForward)      ? add(*static_cast<const NormForward*>(kernel))
         : type == typeid(GatedForward)     ? add(*static_cast<const GatedForward*>(kernel))
         : type == typeid(Rotary)           ? add(*static_cast<const Rotary*>(kernel))
         : type == typeid(CachedAttention)  ? add(*static_cast<const CachedAttention*>(kernel))
                                            : false;
}

bool ResidentSteps::fits(const Matmul& k) const {
  const MatmulSizes sizes = checked_sizes(k);
  return sizes.m == rows_ && sizes.n > 0 && sizes.n <= INT32_MAX && is_row_length(sizes.k, rows_) &&
         k.a.dtype == dtype_ && (k.d.dtype == dtype_ || k.d.dtype == DType::fp32) && !k.a_code &&
         !k.transpose_a && k.transpose_b && !k.add && !k.before &&
         k.derivative == Activation::none && aligned({k.a.data, k.b.data});
}

bool ResidentSteps::fits(const QuantizedProduct& k) const {
  return (k.format == QuantizedFormat::int8 || k.format == QuantizedFormat::fp8) &&
         k.a.rows() == rows_ && k.codes.rows() <= INT32_MAX &&
         is_row_length(k.a.columns(), rows_) && k.a.dtype == dtype_ &&
         aligned({k.a.data, k.codes.data});
}

bool ResidentSteps::fits(const NormForward& k) const {
  return k.stream.rows() == rows_ && is_row_length(k.stream.columns(), rows_) &&
         k.stream.dtype == dtype_ && k.gain.dtype == dtype_ && !k.mask && !k.statistics &&
         aligned({k.stream.data, k.pending.data, k.gain.data, k.bias.data, k.out.data, k.y.data});
}

bool ResidentSteps::fits(const GatedForward& k) const {
  return k.y.rows() == rows_ && is_row_length(k.y.columns(), rows_) && k.x.dtype == dtype_ &&
         aligned({k.x.data, k.y.data});
}

bool ResidentSteps::fits(const Rotary& k) const {
  return k.num_tokens == rows_ && k.data.dtype == dtype_ && !k.inverse && k.turned + 1 == k.heads;
}

bool ResidentSteps::fits(const CachedAttention& k) const {
  const CacheProblem& p = k.problem;
  const std::int64_t d = p.head_dim;
  return p.length == 1 && p.num_sequences == rows_ && p.dtype == dtype_ && k.window == 0 &&
         k.bias == nullptr && (d == 32 || d == 64 || d == 128 || d == 256) &&
         rows_ * p.num_heads() * d <= resident::kMaxInput && p.capacity < INT32_MAX / 2 &&
         aligned({k.qkv.data, k.cache.data, k.out.data});
}

template <class K>
const K* ResidentSteps::at(std::size_t i) const {
  return i < taken_.size() ? std::get_if<K>(&taken_[i]) : nullptr;
}

void ResidentSteps::flush() {
  stream_.set_collector(nullptr);
  for (std::size_t i = 0; i < taken_.size();) {
    const std::size_t count = add_phases(i);
    if (count == 0) {
      launch_phases();
      std::visit(
          [&](const auto& k) {
            timed_launch(stream_, [&] { bloomery::run(OnCuda{}, stream_, k); });
          },
          taken_[i]);
      ++num_single_;
    }
    i += std::max<std::size_t>(count, 1);
  }
  launch_phases();
  taken_.clear();
  stream_.set_collector(this);
}

// False: kernel i is no product.
bool ResidentSteps::set_product(Product& p, std::size_t i) const {
  const auto set = [&](const auto* k) {
    if (k == nullptr) {
      return false;
    }
    p.a = k->a.data;
    p.bias = k->bias.data;
    p.d = k->d.data;
    p.activation = k->activation;
    set_operands(p, *k);
    divide_columns(p);
    return true;
  };
  return set(at<Matmul>(i)) || set(at<QuantizedProduct>(i));
}

// The phases of the kernels from `first` on, and how many those are; 0: it is to be launched by
// itself. Only what stands next to each other becomes one.
std::size_t ResidentSteps::add_phases(std::size_t first) {
  if (room_->num_phases + static_cast<std::int64_t>(phases_.size()) + 2 > kMaxPhases) {
    return 0;
  }
  Phase phase{.is_product = true};
  std::optional<Phase> before;
  const void* input = nullptr;  // of the product, where a kernel before it makes it
  std::size_t next = first;
  if (const auto* norm = at<NormForward>(first)) {
    phase.product.normalised = true;
    phase.product.norm = norm_input(*norm);
    input = norm->y.data;
    ++next;
  } else if (const auto attention = match_attention(first, next)) {
    before = Phase{.attention = *attention};
    input = attention->out;
  }
  Product& p = phase.product;
  if (!set_product(p, next) || (input != nullptr && p.a != input)) {
    return 0;
  }
  const int num_blocks = resident::num_blocks(stream_.device());
  ++next;
  if (const auto* const gated = at<GatedForward>(next);
      gated != nullptr && gated->x.data == p.d && keeps_halves(p, rows_, num_blocks)) {
    p.gate = gated->activation;
    p.gated = gated->y.data;
    ++next;
  }
  divide_rows(p, p.gated != nullptr ? p.n / 2 : p.n, num_blocks);
  if (p.format != QuantizedFormat::none) {
    if (format_ != QuantizedFormat::none && format_ != p.format) {
      return 0;  // a launch has one format
    }
    format_ = p.format;
  }
  if (before) {
    phases_.push_back(*before);
  }
  phases_.push_back(phase);
  return next - first;
}

// Attention with or without a turn in front of it; `next` is the kernel behind it.
std::optional<resident::Attention> ResidentSteps::match_attention(std::size_t first,
                                                                  std::size_t& next) {
  const auto* const rotary = at<Rotary>(first);
  const std::size_t place = first + (rotary != nullptr ? 1 : 0);
  const auto* const k = at<CachedAttention>(place);
  if (k == nullptr || (rotary != nullptr && rotary->data.data != k->qkv.data)) {
    return {};
  }
  if (!same_places(*k, rotary)) {
    return {};
  }
  next = place + 1;
  return resident::Attention{.qkv = k->qkv.data, .cache = k->cache.data, .out = k->out.data};
}

// Whether this attention can be in the launch that is being put together; it starts another one
// where it cannot.
bool ResidentSteps::same_places(const CachedAttention& attention, const Rotary* rotary) {
  const CacheProblem& c = attention.problem;
  resident::Places wanted{.cache = c.places,
                          .capacity = c.capacity,
                          .groups = static_cast<int>(c.num_groups),
                          .heads_per_group = static_cast<int>(c.heads_per_group),
                          .head_dim = static_cast<int>(c.head_dim),
                          .scale = attention.scale};
  if (rotary != nullptr) {
    wanted.frequencies = table(rotary->table);
    wanted.positions = rotary->positions.as<std::int32_t>();
    wanted.pairs = static_cast<int>(rotary->table.num_pairs);
    wanted.magnitude = static_cast<float>(rotary->table.magnitude);
    wanted.interleaved = rotary->interleaved;
    if (wanted.frequencies == nullptr) {
      return false;
    }
  }
  divide_keys(wanted);
  if (places_.cache.slots != nullptr && !(places_ == wanted)) {
    launch_phases();
  }
  places_ = wanted;
  return true;
}

void ResidentSteps::divide_keys(resident::Places& places) {
  const std::int64_t units = rows_ * places.groups * places.heads_per_group;
  const std::int64_t most = (places.capacity + resident::kFewestKeys - 1) / resident::kFewestKeys;
  places.splits = static_cast<int>(
      std::clamp<std::int64_t>(resident::num_blocks(stream_.device()) / units, 1, most));
  const std::int64_t bytes = units * places.splits * places.head_dim *
                             static_cast<std::int64_t>(sizeof(resident::Partial));
  if (!partials_ || partials_.numel() < bytes) {
    partials_ = Tensor::zeros(copies_, DType::uint8, {bytes});
    copies_.synchronize();
  }
  places.partials = partials_.data();
}

// The place of such a table on the device; null when there is no room.
const double* ResidentSteps::table(const RotaryTable& wanted) {
  const auto same = [&](const RotaryTable& t) { return t.frequencies == wanted.frequencies; };
  const auto found = std::find_if(tables_.begin(), tables_.end(), same);
  const std::int64_t number = found - tables_.begin();
  if (number == kMaxTables) {
    return nullptr;
  }
  auto* const place = static_cast<char*>(room_->tables.data()) + number * kTableBytes;
  if (found == tables_.end()) {
    tables_.push_back(wanted);
    resident::upload(copies_, place, wanted.frequencies.data(), kTableBytes);
  }
  return reinterpret_cast<const double*>(place);
}

// How each phase waits. Words of three phases have places of their own, in turns. Who writes some
// has words of the phase before, or met the others: either way every block has sent what it makes
// in the phase before that (attention's part comes from all blocks, too), for which it had read the
// words that had the place.
void ResidentSteps::connect_phases() {
  std::vector<const void*> written;  // by phases before
  const void* kept = nullptr;        // what the last norm left in every block
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    Phase& phase = phases_[i];
    Product& p = phase.product;
    const void* input = phase.attention.qkv;
    bool by_words = i > 0;
    if (phase.is_product && p.normalised) {
      NormInput& norm = p.norm;
      input = norm.pending;
      norm.stream_is_kept = kept != nullptr && norm.stream == kept;
      by_words &= norm.stream_is_kept || std::ranges::find(written, norm.stream) == written.end();
      kept = norm.pending != nullptr ? norm.sum : norm.stream;
    } else if (phase.is_product) {
      input = p.a;
    }
    by_words = by_words && input != nullptr && input == result_in_words(phases_[i - 1], rows_);
    phase.meets = !by_words;
    if (i > 0) {
      phases_[i - 1].meets_next = phase.meets;
    }
    if (by_words) {
      auto* const words = static_cast<std::uint32_t*>(words_.data()) +
                          static_cast<std::int64_t>(i) % kWordPlaces * resident::kMaxWords;
      Phase& before = phases_[i - 1];
      (before.is_product ? before.product.words : before.attention.result_words) = words;
      (phase.is_product ? p.input_words : phase.attention.words) = words;
    }
    written.insert(written.end(), {p.d, p.gated, p.norm.sum, p.norm.y, phase.attention.out});
  }
}

void ResidentSteps::launch_phases() {
  if (phases_.empty()) {
    return;
  }
  connect_phases();
  auto* const place = static_cast<Phase*>(room_->phases.data()) + room_->num_phases;
  resident::upload(copies_, place, phases_.data(), phases_.size() * sizeof(Phase));
  resident::Launch all{.dtype = dtype_,
                       .rows = static_cast<int>(rows_),
                       .phases = place,
                       .num_phases = static_cast<int>(phases_.size()),
                       .arrivals = static_cast<std::uint32_t*>(arrivals_.data()),
                       .places = places_,
                       .format = format_};
  for (const Phase& phase : phases_) {
    if (phase.is_product) {
      const Product& p = phase.product;
      const int rows = all.rows + (p.normalised ? 2 : 0);  // gain and bias beside them
      all.tile_bytes =
          std::max(all.tile_bytes, resident::kTileRows * resident::tile_pitch(p.format));
      all.input_bytes = std::max(all.input_bytes, rows * p.k * 2);
      all.stream_bytes = std::max(all.stream_bytes, p.normalised ? all.rows * p.k * 2 : 0);
      if (p.gated != nullptr) {
        all.num_sums = std::max(all.num_sums,
                                sums_of_halves(p, rows_, resident::num_blocks(stream_.device())));
      }
    }
  }
  timed_launch(stream_, [&] { resident::launch(stream_, all); });
  room_->num_phases += static_cast<std::int64_t>(phases_.size());
  num_phases_ += static_cast<int>(phases_.size());
  phases_.clear();
  places_ = {};
  format_ = QuantizedFormat::none;
}

}  // namespace bloomery
