// Files of records, as JSON texts.
#pragma once

#include <string>
#include <vector>

namespace bloomery {

struct RecordText {
  std::string json;
  std::string place;  // "a.jsonl, line 3", for messages
};

// Each file holds a JSON array, or an object per line; any compression that `preprocess` reads.
// An Error names what is no JSON.
std::vector<RecordText> read_record_files(const std::vector<std::string>& paths_and_patterns);

}  // namespace bloomery
