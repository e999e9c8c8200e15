// A file of passages and their vectors, and the search in it (docs/formats.md, "Index of
// passages").
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "retrieve/passages.h"
#include "tensor/safetensors.h"

namespace bloomery {

struct IndexOptions {
  std::string path;
  std::int64_t batch_size = 128;
  // So many are done of so many.
  std::function<void(std::int64_t done, std::int64_t total)> progress = [](auto, auto) {};
};

// Appears whole or not at all. Returns the number of passages; none is an Error, and so is a vector
// that is not finite.
std::int64_t write_index(TextVectors& vectors, const ForEachPassage& passages,
                         const std::string& model, const IndexOptions& options);

struct Found {
  std::int64_t passage = 0;  // its place in the index
  float score = 0;
};

class PassageIndex {
 public:
  // An Error says why the file is no such index.
  explicit PassageIndex(const std::string& path);

  std::int64_t size() const { return size_; }
  std::int64_t width() const { return width_; }
  const std::string& model() const { return file_.metadata().at("model"); }
  TextPassage passage(std::int64_t place) const;

  // For each row of queries, fp32 [queries, width] on the stream's device, the passages with the
  // largest products, best first; of equal ones the first. All passages are looked at. Products
  // that are NaN come last; a query with NaN is an Error.
  std::vector<std::vector<Found>> search(Stream& stream, const Tensor& queries,
                                         std::int64_t count) const;

 private:
  void read(const char* tensor, std::size_t at, void* to, std::size_t bytes) const;

  SafetensorsFile file_;
  InputFile bytes_;
  std::int64_t size_ = 0, width_ = 0;
};

}  // namespace bloomery
