// The values of a page, by how they are encoded.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/parquet/metadata.h"
#include "text/parquet/schema.h"

namespace bloomery {

// As stored: the bits of a number or boolean, or bytes.
struct ParquetValue {
  std::uint64_t number = 0;
  std::string_view bytes;
};

class ParquetValues {
 public:
  virtual ~ParquetValues() = default;
  // The next one, which stays valid until the one after it; an Error at the end of the bytes.
  virtual void next(ParquetValue& value) = 0;
};

// The values in `bytes`, which must stay, as `dictionary` must. An encoding that is not for values
// of the leaf's type is an Error.
std::unique_ptr<ParquetValues> parquet_values(std::string_view bytes, ParquetEncoding encoding,
                                              const ParquetNode& leaf,
                                              const std::vector<ParquetValue>& dictionary);

// The `count` values of a dictionary page, which refer to its bytes.
std::vector<ParquetValue> parquet_dictionary(std::string_view bytes, std::int64_t count,
                                             const ParquetNode& leaf);

}  // namespace bloomery
