// Questions and the passages that answer them, in the files of DPR, from which retrievers learn.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bloomery {

struct TitledPassage {
  std::string title, text;
};

struct NaturalQuestion {
  std::string question;                    // without a question mark at its end
  TitledPassage positive;                  // the first of those that answer it
  std::vector<TitledPassage> hard, other;  // that do not; the hard ones look as if they did
};

// Hands over one question after another. The file is one JSON list, compressed or not. Returns how
// many records have no passage that answers them and were left out. An Error names the file and the
// record, counted from 1.
std::int64_t read_natural_questions(const std::string& path,
                                    const std::function<void(NaturalQuestion)>& take);

}  // namespace bloomery
