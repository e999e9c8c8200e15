// What a Parquet file says about itself: its footer and the heads of its pages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

// The types that values are stored as, with the numbers that files have.
enum class ParquetType { boolean, int32, int64, int96, float32, float64, bytes, fixed_bytes };

enum class ParquetEncoding {
  plain = 0,
  plain_dictionary = 2,
  rle = 3,
  bit_packed = 4,
  delta_binary_packed = 5,
  delta_length_bytes = 6,
  delta_bytes = 7,
  rle_dictionary = 8,
  byte_stream_split = 9
};

// What stored values mean.
struct ParquetMeaning {
  enum class Kind { none, text, list, map, decimal, date, time, timestamp, integer, uuid, float16 };
  Kind kind = Kind::none;
  int scale = 0;             // decimal: digits after the point
  int units_per_second = 1;  // time, timestamp
  bool utc = false;          // timestamp
  bool is_unsigned = false;  // integer
};

struct ParquetElement {  // of the schema
  std::string name;
  bool has_type = false;
  ParquetType type = ParquetType::boolean;
  std::int64_t type_length = 0;  // of fixed_bytes
  enum class Repetition { required, optional, repeated } repetition = Repetition::required;
  std::int64_t num_children = 0;
  ParquetMeaning meaning;
};

struct ParquetChunk {  // a column of a row group
  ParquetType type = ParquetType::boolean;
  std::int64_t codec = 0, num_values = 0, packed_bytes = 0;
  std::int64_t data_page_offset = 0, dictionary_page_offset = 0;  // 0: no dictionary
  bool has_data = false, encrypted = false, in_other_file = false;

  std::int64_t begin() const;
};

struct ParquetGroup {  // of rows
  std::vector<ParquetChunk> chunks;
  std::int64_t num_rows = 0;
};

struct ParquetFooter {
  std::vector<ParquetElement> schema;  // a tree, parents before their children
  std::vector<ParquetGroup> groups;
  std::int64_t num_rows = 0;
};

ParquetFooter parse_parquet_footer(std::string_view bytes);

struct ParquetPage {
  enum class Kind { data = 0, index = 1, dictionary = 2, data_v2 = 3 };
  Kind kind = Kind::data;
  std::uint64_t head_bytes = 0, packed_bytes = 0, bytes = 0;
  bool has_crc = false;
  std::uint32_t crc = 0;
  std::int64_t num_values = 0;
  ParquetEncoding encoding = ParquetEncoding::plain;
  ParquetEncoding definition_encoding = ParquetEncoding::rle;
  ParquetEncoding repetition_encoding = ParquetEncoding::rle;
  std::uint64_t definition_bytes = 0, repetition_bytes = 0;  // of version 2
  bool compressed = true;                                    // of version 2
};

// The head that the bytes begin with. A ThriftCutOff says that more bytes are needed.
ParquetPage parse_parquet_page(std::string_view bytes);

}  // namespace bloomery
