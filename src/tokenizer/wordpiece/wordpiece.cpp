#include "tokenizer/wordpiece/wordpiece.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/hf/filter.h"
#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/hf/model_tables.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr std::int64_t kMostExtraIds = 1'000'000;

std::uint64_t place_of(const hf::ModelTables& tables, std::string_view piece) {
  const auto found = std::ranges::find(tables.vocab.rbegin(), tables.vocab.rend(), piece,
                                       &hf::ModelTables::Token::piece);
  return static_cast<std::uint64_t>(tables.vocab.rend() - found - 1);
}

}  // namespace

nlohmann::ordered_json word_piece_settings(hf::ModelTables& tables) {
  tables.vocab_kind = hf::ModelTables::Kind::object;
  nlohmann::ordered_json settings = {{"model", {{"type", "WordPiece"}}},
                                     {"normalizer",
                                      {{"type", "BertNormalizer"},
                                       {"clean_text", true},
                                       {"handle_chinese_chars", true},
                                       {"strip_accents", nullptr},
                                       {"lowercase", !hf::has_token(tables, "A")}}},
                                     {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                                     {"decoder", {{"type", "WordPiece"}}}};
  hf::add_known({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, tables, settings["added_tokens"]);
  nlohmann::ordered_json around = {{"type", "TemplateProcessing"},
                                   {"single", nlohmann::ordered_json::array()}};
  const auto add = [&](const char* name) {
    if (!hf::has_token(tables, name)) return;
    around["single"].push_back({{"SpecialToken", {{"id", name}}}});
    around["special_tokens"][name]["ids"].push_back(place_of(tables, name));
  };
  add("[CLS]");
  around["single"].push_back({{"Sequence", {{"id", "A"}}}});
  add("[SEP]");
  settings["post_processor"] = std::move(around);
  return settings;
}

std::shared_ptr<const Tokenizer> parse_wordpiece(std::string contents, const std::string& name,
                                                 const WordPieceOptions& options) {
  check(options.extra_ids >= 0 && options.extra_ids <= kMostExtraIds, "vocab-extra-ids is ",
        options.extra_ids, "; it must be between 0 and ", kMostExtraIds);
  check(is_utf8(contents), name, ": not valid UTF-8 from byte ", valid_utf8_prefix(contents));
  hf::ModelTables tables;
  hf::each_line(tables.keep(std::move(contents)), [&](std::string_view line) {
    tables.vocab.push_back({line.substr(0, hf::space_begin(line))});
  });
  check(hf::has_token(tables, "[UNK]"), name, ": no line [UNK] among ", tables.vocab.size(),
        "; a WordPiece vocabulary has one piece on each line");
  nlohmann::ordered_json settings = word_piece_settings(tables);
  settings["model"]["max_input_chars_per_word"] = options.longest_word;
  if (options.lowercase) settings["normalizer"]["lowercase"] = *options.lowercase;
  SpecialTokenNames names{.has_end = false};
  if (options.megatron) {
    const auto add = [&](const std::string& content) {
      settings["added_tokens"].push_back({{"content", content}, {"special", true}});
    };
    add(names.bos = "[BOS]");
    add(names.eos = "[EOS]");
    for (std::int64_t i = 0; i < options.extra_ids; ++i) add(concat("<extra_id_", i, ">"));
  }
  return make_hf_tokenizer(JsonFields::of(std::move(settings), name), tables, name, names);
}

std::shared_ptr<const Tokenizer> load_wordpiece(const std::filesystem::path& vocab_txt,
                                                const WordPieceOptions& options) {
  return parse_wordpiece(read_file(vocab_txt), vocab_txt.string(), options);
}

}  // namespace bloomery
