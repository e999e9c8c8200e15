#include "retrieve/passage_index.h"

#include <algorithm>
#include <cmath>

#include "base/round_up.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/matmul/matmul.h"

namespace bloomery {
namespace {

constexpr const char* kFormat = "bloomery passages 1";
// In the order of the file. Offsets: where titles and texts begin in `texts`, in turn, and the end.
constexpr const char *kTexts = "texts", *kOffsets = "offsets", *kIds = "ids", *kVectors = "vectors";
constexpr std::int64_t kRowsAtOnce = 1 << 15;  // of a search

// What is written beside the vectors.
struct Words {
  std::vector<std::int64_t> ids, offsets = {0};

  void add(const TextPassage& passage) {
    ids.push_back(passage.id);
    for (const std::string* text : {&passage.title, &passage.text}) {
      offsets.push_back(offsets.back() + std::ssize(*text));
    }
  }
  std::int64_t size() const { return std::ssize(ids); }
};

Words count(const ForEachPassage& passages) {
  Words words;
  passages([&](const TextPassage& passage) { words.add(passage); });
  check(words.size() > 0, "there are no passages to index");
  std::vector<std::int64_t> ids = words.ids;
  std::ranges::sort(ids);
  const auto twice = std::ranges::adjacent_find(ids);
  check(twice == ids.end(), "two passages have the id ", twice == ids.end() ? 0 : *twice);
  return words;
}

template <class T>
void write_numbers(AtomicFile& file, const std::vector<T>& numbers) {
  file.write(numbers.data(), numbers.size() * sizeof(T));
}

bool is_no_number(float16 number) { return !std::isfinite(static_cast<float>(number)); }

// Embeds passages as they come and writes their vectors.
class VectorWriter {
 public:
  VectorWriter(AtomicFile& file, TextVectors& vectors, const IndexOptions& options,
               std::int64_t total)
      : file_(file), vectors_(vectors), options_(options), total_(total) {}

  void add(const TextPassage& passage) {
    ids_.push_back(passage.id);
    waiting_.push_back(vectors_.context(passage.title, passage.text));
    if (std::ssize(waiting_) == options_.batch_size) {
      flush();
    }
  }
  void flush() {
    if (waiting_.empty()) {
      return;
    }
    const Tensor found = vectors_.contexts(waiting_);
    const Tensor half = Tensor::empty(vectors_.stream(), DType::fp16, found.shape());
    launch(vectors_.stream(), ScaleAdd{.x = found, .y = half});
    const std::vector<float16> numbers = half.to_host<float16>(vectors_.stream());
    check_numbers(numbers);
    write_numbers(file_, numbers);
    done_ += std::ssize(waiting_);
    options_.progress(done_, total_);
    waiting_.clear();
    ids_.clear();
  }

 private:
  void check_numbers(const std::vector<float16>& numbers) const {
    const auto bad = std::ranges::find_if(numbers, is_no_number);
    if (bad == numbers.end()) return;
    const auto row = static_cast<std::size_t>((bad - numbers.begin()) / vectors_.width());
    throw Error(
        concat("the vector of passage ", ids_[row],
               " has a number that is NaN or too large for fp16: the model is not trained, ",
               "or its training diverged; give an earlier checkpoint"));
  }

  AtomicFile& file_;
  TextVectors& vectors_;
  const IndexOptions& options_;
  std::int64_t total_, done_ = 0;
  std::vector<std::int64_t> ids_;  // of those that wait
  std::vector<std::vector<TokenId>> waiting_;
};

// Keeps the best of what it is shown.
class TopK {
 public:
  explicit TopK(std::int64_t count) : count_(static_cast<std::size_t>(count)) {}

  void show(std::span<const float> scores, std::int64_t first) {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const Found found{first + static_cast<std::int64_t>(i), scores[i]};
      if (heap_.size() < count_) {
        heap_.push_back(found);
        std::ranges::push_heap(heap_, better);
      } else if (better(found, heap_.front())) {
        std::ranges::pop_heap(heap_, better);
        heap_.back() = found;
        std::ranges::push_heap(heap_, better);
      }
    }
  }
  std::vector<Found> sorted() {
    std::ranges::sort(heap_, better);
    return std::move(heap_);
  }

 private:
  // What is no number comes behind all numbers, so that there is an order.
  static bool better(const Found& a, const Found& b) {
    const bool a_counts = !std::isnan(a.score), b_counts = !std::isnan(b.score);
    if (a_counts != b_counts) return a_counts;
    return a_counts && a.score != b.score ? a.score > b.score : a.passage < b.passage;
  }
  std::size_t count_;
  std::vector<Found> heap_;  // the worst in front
};

}  // namespace

std::int64_t write_index(TextVectors& vectors, const ForEachPassage& passages,
                         const std::string& model, const IndexOptions& options) {
  const Words words = count(passages);
  const std::int64_t bytes = words.offsets.back(), padded = round_up(bytes, 8);
  AtomicFile file(options.path);
  file.write(safetensors_header({{kTexts, DType::uint8, {padded}},
                                 {kOffsets, DType::int64, {2 * words.size() + 1}},
                                 {kIds, DType::int64, {words.size()}},
                                 {kVectors, DType::fp16, {words.size(), vectors.width()}}},
                                {{"format", kFormat}, {"model", model}}));
  std::int64_t written = 0;
  passages([&](const TextPassage& passage) {
    file.write(passage.title);
    file.write(passage.text);
    written += std::ssize(passage.title) + std::ssize(passage.text);
  });
  check(written == bytes, "the passages changed while they were read; try again");
  file.write(std::string(static_cast<std::size_t>(padded - bytes), '\0'));
  write_numbers(file, words.offsets);
  write_numbers(file, words.ids);
  VectorWriter writer(file, vectors, options, words.size());
  passages([&](const TextPassage& passage) { writer.add(passage); });
  writer.flush();
  file.commit();
  return words.size();
}

PassageIndex::PassageIndex(const std::string& path) : file_(path), bytes_(path) {
  const auto format = file_.metadata().find("format");
  check(format != file_.metadata().end() && format->second == kFormat, path,
        " is no index of passages: make one with `bloomery retrieve index`");
  const auto shape = [&](const char* name) { return file_.entry(name).shape; };
  const auto is = [&](const char* name, DType dtype) { return file_.entry(name).dtype == dtype; };
  check(shape(kVectors).rank() == 2 && is(kVectors, DType::fp16), path, ": damaged vectors");
  size_ = shape(kVectors)[0];
  width_ = shape(kVectors)[1];
  check(size_ > 0 && width_ > 0 && shape(kIds) == Shape{size_} && is(kIds, DType::int64) &&
            shape(kOffsets) == Shape{2 * size_ + 1} && is(kOffsets, DType::int64) &&
            is(kTexts, DType::uint8) && file_.metadata().contains("model"),
        path, ": damaged: its tensors do not fit together; make the index again");
}

void PassageIndex::read(const char* tensor, std::size_t at, void* to, std::size_t bytes) const {
  bytes_.read(file_.data_offset() + file_.entry(tensor).begin + at, to, bytes);
}

TextPassage PassageIndex::passage(std::int64_t place) const {
  TextPassage passage;
  const auto i = static_cast<std::size_t>(place);
  read(kIds, 8 * i, &passage.id, 8);
  std::int64_t offsets[3];
  read(kOffsets, 16 * i, offsets, sizeof(offsets));
  check(0 <= offsets[0] && offsets[0] <= offsets[1] && offsets[1] <= offsets[2] &&
            offsets[2] <= file_.entry(kTexts).shape[0],
        bytes_.name(), ": damaged: the text of passage ", place, " lies nowhere");
  for (const int part : {0, 1}) {
    std::string& text = part == 0 ? passage.title : passage.text;
    text.resize(static_cast<std::size_t>(offsets[part + 1] - offsets[part]));
    read(kTexts, static_cast<std::size_t>(offsets[part]), text.data(), text.size());
  }
  return passage;
}

std::vector<std::vector<Found>> PassageIndex::search(Stream& stream, const Tensor& queries,
                                                     std::int64_t count) const {
  check(queries.shape().rank() == 2 && queries.shape()[1] == width_, "the index has vectors of ",
        width_, " numbers, the model makes such of ", queries.shape().back(),
        ": was it made with another model?");
  const std::vector<float> asked = queries.to_host<float>(stream);
  check(std::ranges::all_of(asked, [](float number) { return std::isfinite(number); }),
        "the model makes a vector with NaN of a question: it is not trained, or its training ",
        "diverged; give an earlier checkpoint");
  const std::int64_t rows = queries.shape()[0];
  std::vector<TopK> best(static_cast<std::size_t>(rows), TopK(std::min(count, size_)));
  for (std::int64_t first = 0; first < size_; first += kRowsAtOnce) {
    const std::int64_t held = std::min(kRowsAtOnce, size_ - first);
    std::vector<float16> stored(static_cast<std::size_t>(held * width_));
    read(kVectors, static_cast<std::size_t>(first * width_) * sizeof(float16), stored.data(),
         stored.size() * sizeof(float16));
    const Tensor half = Tensor::from_host(stream, stored, {held, width_});
    const Tensor passages = Tensor::empty(stream, DType::fp32, half.shape());
    launch(stream, ScaleAdd{.x = half, .y = passages});
    const Tensor scores = Tensor::empty(stream, DType::fp32, {rows, held});
    launch(stream,
           Matmul{.a = queries, .b = passages, .d = scores, .transpose_b = true, .ragged = true});
    const std::vector<float> all = scores.to_host<float>(stream);
    for (std::int64_t row = 0; row < rows; ++row) {
      best[static_cast<std::size_t>(row)].show(
          std::span(all).subspan(static_cast<std::size_t>(row * held),
                                 static_cast<std::size_t>(held)),
          first);
    }
  }
  std::vector<std::vector<Found>> found;
  for (TopK& each : best) {
    found.push_back(each.sorted());
  }
  return found;
}

}  // namespace bloomery
