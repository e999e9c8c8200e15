#include "text/parquet/metadata.h"

#include <algorithm>

#include "text/parquet/thrift.h"

namespace bloomery {
namespace {

using Field = ThriftReader::Field;
using Type = ThriftReader::Type;
using Kind = ParquetMeaning::Kind;

constexpr int kMilli = 1000, kMicro = 1'000'000, kNano = 1'000'000'000;

ParquetType type_of(std::int64_t number) {
  check(number >= 0 && number <= static_cast<int>(ParquetType::fixed_bytes), "a type ", number,
        ", which there is not");
  return static_cast<ParquetType>(number);
}

std::uint64_t size_of(ThriftReader& reader, const Field& field) {
  const std::int64_t size = reader.integer(field);
  check(size >= 0 && size <= INT32_MAX, "a size of ", size, " bytes");
  return static_cast<std::uint64_t>(size);
}

// The older way to say what values mean.
ParquetMeaning converted_meaning(std::int64_t number) {
  switch (number) {
    case 0:   // UTF8
    case 4:   // ENUM
    case 19:  // JSON
      return {.kind = Kind::text};
    case 1:
    case 2:
      return {.kind = Kind::map};
    case 3:
      return {.kind = Kind::list};
    case 5:
      return {.kind = Kind::decimal};
    case 6:
      return {.kind = Kind::date};
    case 7:
    case 8:
      return {.kind = Kind::time, .units_per_second = number == 7 ? kMilli : kMicro};
    case 9:
    case 10:
      return {
          .kind = Kind::timestamp, .units_per_second = number == 9 ? kMilli : kMicro, .utc = true};
    default:
      if (number >= 11 && number <= 18) return {.kind = Kind::integer, .is_unsigned = number < 15};
      return {};
  }
}

int parse_unit(ThriftReader& reader) {
  int units = kMilli;
  reader.read_struct([&](const Field& field) {
    units = field.id == 1 ? kMilli : field.id == 2 ? kMicro : kNano;
    return false;
  });
  return units;
}

// Of TimeType, TimestampType, DecimalType and IntType.
void parse_details(ThriftReader& reader, ParquetMeaning& meaning) {
  reader.read_struct([&](const Field& field) {
    if (meaning.kind == Kind::decimal) {
      if (field.id != 1) return false;
      meaning.scale = static_cast<int>(reader.integer(field));
    } else if (meaning.kind == Kind::integer) {
      if (field.id != 2) return false;
      meaning.is_unsigned = !reader.boolean(field);
    } else if (field.id == 1) {
      meaning.utc = reader.boolean(field);
    } else {
      if (field.id != 2) return false;
      reader.require_struct(field);
      meaning.units_per_second = parse_unit(reader);
    }
    return true;
  });
}

Kind logical_kind(int field) {
  switch (field) {
    case 1:   // STRING
    case 4:   // ENUM
    case 12:  // JSON
      return Kind::text;
    case 2:
      return Kind::map;
    case 3:
      return Kind::list;
    case 5:
      return Kind::decimal;
    case 6:
      return Kind::date;
    case 7:
      return Kind::time;
    case 8:
      return Kind::timestamp;
    case 10:
      return Kind::integer;
    case 14:
      return Kind::uuid;
    case 15:
      return Kind::float16;
    default:
      return Kind::none;
  }
}

// A union: the one field that it has says which type.
ParquetMeaning logical_meaning(ThriftReader& reader) {
  ParquetMeaning meaning;
  reader.read_struct([&](const Field& field) {
    meaning.kind = logical_kind(field.id);
    const bool has_details = meaning.kind == Kind::decimal || meaning.kind == Kind::time ||
                             meaning.kind == Kind::timestamp || meaning.kind == Kind::integer;
    if (!has_details) return false;
    reader.require_struct(field);
    parse_details(reader, meaning);
    return true;
  });
  return meaning;
}

ParquetElement parse_element(ThriftReader& reader) {
  ParquetElement element;
  ParquetMeaning converted, logical;
  std::int64_t scale = 0;
  reader.read_struct([&](const Field& field) {
    switch (field.id) {
      case 1:
        element.type = type_of(reader.integer(field));
        element.has_type = true;
        return true;
      case 2:
        element.type_length = reader.integer(field);
        return true;
      case 3: {
        const std::int64_t number = reader.integer(field);
        check(number >= 0 && number <= 2, "a repetition ", number, ", which there is not");
        element.repetition = static_cast<ParquetElement::Repetition>(number);
        return true;
      }
      case 4:
        element.name = reader.text(field);
        return true;
      case 5:
        element.num_children = reader.integer(field);
        return true;
      case 6:
        converted = converted_meaning(reader.integer(field));
        return true;
      case 7:
        scale = reader.integer(field);
        return true;
      case 10:
        reader.require_struct(field);
        logical = logical_meaning(reader);
        return true;
      default:
        return false;
    }
  });
  converted.scale = static_cast<int>(std::clamp<std::int64_t>(scale, -1, INT32_MAX));
  element.meaning = logical.kind != Kind::none ? logical : converted;
  return element;
}

void parse_chunk_data(ThriftReader& reader, ParquetChunk& chunk) {
  chunk.has_data = true;
  reader.read_struct([&](const Field& field) {
    switch (field.id) {
      case 1:
        chunk.type = type_of(reader.integer(field));
        return true;
      case 4:
        chunk.codec = reader.integer(field);
        return true;
      case 5:
        chunk.num_values = reader.integer(field);
        return true;
      case 7:
        chunk.packed_bytes = reader.integer(field);
        return true;
      case 9:
        chunk.data_page_offset = reader.integer(field);
        return true;
      case 11:
        chunk.dictionary_page_offset = reader.integer(field);
        return true;
      default:
        return false;
    }
  });
}

ParquetChunk parse_chunk(ThriftReader& reader) {
  ParquetChunk chunk;
  reader.read_struct([&](const Field& field) {
    switch (field.id) {
      case 1:
        chunk.in_other_file = !reader.text(field).empty();
        return true;
      case 3:
        reader.require_struct(field);
        parse_chunk_data(reader, chunk);
        return true;
      case 8:
        chunk.encrypted = true;
        return false;
      default:
        return false;
    }
  });
  return chunk;
}

ParquetGroup parse_group(ThriftReader& reader) {
  ParquetGroup group;
  reader.read_struct([&](const Field& field) {
    if (field.id == 1) {
      reader.read_list(field, Type::object, [&] { group.chunks.push_back(parse_chunk(reader)); });
    } else if (field.id == 3) {
      group.num_rows = reader.integer(field);
    } else {
      return false;
    }
    return true;
  });
  check(group.num_rows >= 0, "a row group of ", group.num_rows, " rows");
  return group;
}

ParquetEncoding encoding_of(ThriftReader& reader, const Field& field) {
  const std::int64_t number = reader.integer(field);
  check(number >= 0 && number <= 9 && number != 1, "its encoding ", number, " is not known");
  return static_cast<ParquetEncoding>(number);
}

// The numbers of fields are those of version 1.
bool parse_data_field(ThriftReader& reader, const Field& field, ParquetPage& page) {
  switch (field.id) {
    case 1:
      page.num_values = reader.integer(field);
      return true;
    case 2:
      page.encoding = encoding_of(reader, field);
      return true;
    case 3:
      page.definition_encoding = encoding_of(reader, field);
      return true;
    case 4:
      page.repetition_encoding = encoding_of(reader, field);
      return true;
    default:
      return false;
  }
}

bool parse_data_v2_field(ThriftReader& reader, const Field& field, ParquetPage& page) {
  switch (field.id) {
    case 1:
      page.num_values = reader.integer(field);
      return true;
    case 4:
      page.encoding = encoding_of(reader, field);
      return true;
    case 5:
      page.definition_bytes = size_of(reader, field);
      return true;
    case 6:
      page.repetition_bytes = size_of(reader, field);
      return true;
    case 7:
      page.compressed = reader.boolean(field);
      return true;
    default:
      return false;
  }
}

bool parse_page_field(ThriftReader& reader, const Field& field, ParquetPage& page) {
  switch (field.id) {
    case 1: {
      const std::int64_t kind = reader.integer(field);
      check(kind >= 0 && kind <= 3, "a page of kind ", kind, ", which there is not");
      page.kind = static_cast<ParquetPage::Kind>(kind);
      return true;
    }
    case 2:
      page.bytes = size_of(reader, field);
      return true;
    case 3:
      page.packed_bytes = size_of(reader, field);
      return true;
    case 4:
      page.has_crc = true;
      page.crc = static_cast<std::uint32_t>(reader.integer(field));
      return true;
    case 5:
    case 7:  // a dictionary's first two fields are those of data
      reader.require_struct(field);
      reader.read_struct([&](const Field& inner) {
        return (field.id == 5 || inner.id <= 2) && parse_data_field(reader, inner, page);
      });
      return true;
    case 8:
      reader.require_struct(field);
      reader.read_struct(
          [&](const Field& inner) { return parse_data_v2_field(reader, inner, page); });
      return true;
    default:
      return false;
  }
}

}  // namespace

std::int64_t ParquetChunk::begin() const {
  return dictionary_page_offset > 0 ? std::min(dictionary_page_offset, data_page_offset)
                                    : data_page_offset;
}

ParquetFooter parse_parquet_footer(std::string_view bytes) {
  ParquetFooter footer;
  ThriftReader reader(bytes);
  reader.read_struct([&](const Field& field) {
    switch (field.id) {
      case 2:
        reader.read_list(field, Type::object,
                         [&] { footer.schema.push_back(parse_element(reader)); });
        return true;
      case 3:
        footer.num_rows = reader.integer(field);
        return true;
      case 4:
        reader.read_list(field, Type::object,
                         [&] { footer.groups.push_back(parse_group(reader)); });
        return true;
      default:
        return false;
    }
  });
  return footer;
}

ParquetPage parse_parquet_page(std::string_view bytes) {
  ParquetPage page;
  ThriftReader reader(bytes);
  std::uint32_t present = 0;  // a bit for each field
  reader.read_struct([&](const Field& field) {
    present |= field.id >= 0 && field.id < 32 ? 1u << field.id : 0;
    return parse_page_field(reader, field, page);
  });
  page.head_bytes = reader.position();
  constexpr int kHeads[] = {5, 6, 7, 8};  // the field that each kind of page needs
  const std::uint32_t needed =
      1u << 1 | 1u << 2 | 1u << 3 | 1u << kHeads[static_cast<int>(page.kind)];
  check((present & needed) == needed, "a page's head lacks a field that every page has");
  check(page.num_values >= 0 && page.num_values <= INT32_MAX, "a page of ", page.num_values,
        " values");
  return page;
}

}  // namespace bloomery
