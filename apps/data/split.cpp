// `bloomery data split`: parts of a corpus, by documents.
#include "samples/split.h"

#include <charconv>
#include <optional>

#include "apps/common/command_line.h"
#include "apps/data/common.h"
#include "apps/data/data.h"
#include "base/error.h"
#include "base/log.h"
#include "corpus/corpus_tools.h"

namespace bloomery {
namespace {

struct SplitOptions {
  std::string input, output_prefix;
  std::string split, documents;
  std::int64_t parts = 0;
};

void describe(OptionTable& t, SplitOptions& o) {
  t.section("corpora");
  t.add("input", o.input, "Corpus prefix: the path without .bin and .idx.").positional().required();
  t.add("output-prefix", o.output_prefix,
        "Prefix of the output: PREFIX_train, PREFIX_valid, PREFIX_test; or PREFIX_part000, ...; or "
        "just PREFIX with --documents.")
      .required();
  t.section("parts (give one of these)");
  t.add("split", o.split,
        "Proportions of documents for training, validation and test, as --split of pretrain: "
        "969,30,1.");
  t.add("parts", o.parts, "Number of parts, of about the same number of tokens, in order.",
        between(0, 1000000));
  t.add("documents", o.documents, "Documents FIRST:LAST, counted from 0; LAST is not included.");
}

struct Part {
  std::string prefix;
  std::int64_t first = 0, last = 0;
};

std::int64_t parse_document(std::string_view text, std::int64_t otherwise,
                            const std::string& option) {
  std::int64_t value = otherwise;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(text.empty() || (error == std::errc{} && end == text.data() + text.size()),
        "--documents: '", option, "' is not FIRST:LAST, e.g. 0:1000, 500: or :100");
  return value;
}

Part chosen_documents(const SplitOptions& options, const IndexedCorpus& corpus) {
  const std::string& text = options.documents;
  const std::size_t colon = text.find(':');
  check(colon != std::string::npos, "--documents: '", text,
        "' is not FIRST:LAST, e.g. 0:1000, 500: or :100");
  const std::string_view view(text);
  Part part{options.output_prefix, parse_document(view.substr(0, colon), 0, text),
            parse_document(view.substr(colon + 1), corpus.num_documents(), text)};
  check(part.first >= 0 && part.first < part.last && part.last <= corpus.num_documents(),
        "--documents ", text, ": the corpus has documents 0 to ", corpus.num_documents());
  return part;
}

std::vector<Part> parts_of(const SplitOptions& options, const IndexedCorpus& corpus) {
  if (!options.documents.empty()) {
    return {chosen_documents(options, corpus)};
  }
  std::vector<Part> parts;
  if (!options.split.empty()) {
    const auto ranges = split_ranges(options.split, corpus.num_documents());
    for (const Split split : kSplits) {
      const SplitRange& range = ranges[static_cast<std::size_t>(split)];
      parts.push_back({concat(options.output_prefix, "_", name(split)), range.first, range.last});
    }
    return parts;
  }
  const std::vector<std::int64_t> borders = equal_parts(corpus, options.parts);
  const std::size_t digits = std::max<std::size_t>(3, std::to_string(options.parts - 1).size());
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    std::string number = std::to_string(i);
    number.insert(0, digits - number.size(), '0');  // so that sorting by name keeps the order
    parts.push_back({concat(options.output_prefix, "_part", number), borders[i], borders[i + 1]});
  }
  return parts;
}

std::vector<std::string> problems(const SplitOptions& options) {
  const int given = static_cast<int>(!options.split.empty()) + static_cast<int>(options.parts > 0) +
                    static_cast<int>(!options.documents.empty());
  if (given == 1) {
    return {};
  }
  return {"give one of --split, --parts and --documents"};
}

}  // namespace

int data_split(const Arguments& arguments, std::ostream& out) {
  SplitOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(table, arguments, out,
                    "usage: bloomery data split PREFIX --output-prefix PREFIX [OPTIONS]\n\nSplits "
                    "a corpus by documents.\n\nexample:\n  bloomery data split "
                    "run/my_text_document --output-prefix run/my --split 969,30,1\n",
                    [&] { return problems(options); })) {
    return 0;
  }
  const IndexedCorpus corpus(corpus_prefixes({options.input}).at(0));
  if (corpus.num_uncounted_tokens() > 0) {
    Log().warning(options.input, ": ", corpus.num_uncounted_tokens(),
                  " tokens of its .bin, which no length counts, are left out; see `bloomery data "
                  "verify`");
  }
  const auto tokenizer = read_corpus_tokenizer(corpus.prefix());
  for (const Part& part : parts_of(options, corpus)) {
    if (part.first == part.last) {
      out << part.prefix << ": no documents, not written\n";
      continue;
    }
    IndexedWriter writer(part.prefix, corpus.type());
    if (tokenizer) {
      writer.set_tokenizer(*tokenizer);
    }
    writer.append(corpus, part.first, part.last);
    writer.commit();
    out << part.prefix << ": documents " << grouped(part.first) << " to " << grouped(part.last - 1)
        << ", " << counted(writer.num_tokens(), "token") << std::endl;
  }
  return 0;
}

}  // namespace bloomery
