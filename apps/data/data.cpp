#include "apps/data/data.h"

namespace bloomery {

int data(const Arguments& arguments, std::ostream& out) {
  return dispatch(
      "bloomery data",
      {
          {"inspect", "Print statistics and samples of a corpus", data_inspect},
          {"verify", "Check every field and every token of corpora", data_verify},
          {"merge", "Merge corpora into one", data_merge},
          {"samples", "Print the samples that training will read", data_samples},
          {"split", "Split a corpus by documents", data_split},
          {"clean", "Repair broken text", data_clean},
          {"filter", "Drop documents by URL, length, language and quality", data_filter},
          {"dedup", "Remove duplicates from text, near or exact", data_dedup},
          {"decontaminate", "Remove texts of test sets from documents", data_decontaminate},
          {"extract-wiki", "Extract the articles of a Wikipedia dump as JSON", data_extract_wiki},
          {"analyze", "Measure the difficulty of samples for curriculum learning", data_analyze},
          {"stories", "Write synthetic stories from a built-in grammar, or score texts by it",
           data_stories},
      },
      arguments, out);
}

}  // namespace bloomery
