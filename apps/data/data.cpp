#include "apps/data/data.h"

namespace bloomery {

int data(const Arguments& arguments, std::ostream& out) {
  return dispatch(
      "bloomery data",
      {
          {"inspect", "statistics and samples of a corpus", data_inspect},
          {"verify", "check every field and every token of corpora", data_verify},
          {"merge", "join corpora to one", data_merge},
          {"samples", "the token ids that training will see", data_samples},
          {"split", "divide a corpus by documents", data_split},
          {"clean", "repair broken text", data_clean},
          {"filter", "drop documents by URL, length, language and quality", data_filter},
          {"dedup", "remove duplicates from text, near or exact", data_dedup},
          {"decontaminate", "drop documents that hold texts of test sets", data_decontaminate},
          {"extract-wiki", "the articles of a Wikipedia dump as JSON", data_extract_wiki},
          {"analyze", "how difficult samples are, for curricula", data_analyze},
          {"stories", "tell the stories of the embedded corpus, or score texts by them",
           data_stories},
      },
      arguments, out);
}

}  // namespace bloomery
