// Numbered samples, whatever they are made of.
#pragma once

#include <string>

#include "samples/host_batch.h"

namespace bloomery {

// Immutable and shared by threads.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  // The arrays of every sample.
  virtual const SampleFields& fields() const = 0;
  // Writes every array of sample k. A k past the end is an Error.
  virtual void read(std::int64_t k, const Sample& out) const = 0;
  // The text that names caches made of this dataset.
  virtual const std::string& description() const = 0;
};

}  // namespace bloomery
