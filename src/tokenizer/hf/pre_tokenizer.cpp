#include "tokenizer/hf/pre_tokenizer.h"

#include <array>

#include "base/error.h"
#include "config/json_fields.h"
#include "tokenizer/hf/char_classes.h"
#include "tokenizer/hf/metaspace.h"
#include "tokenizer/hf/splitting.h"
#include "tokenizer/hf/text_pattern.h"
#include "tokenizer/word_mark.h"

namespace bloomery::hf {
namespace {

// Cuts where characters of a class stand.
class ClassSplit : public PreTokenizer {
 public:
  ClassSplit(bool (*is_member)(char32_t), Behavior behavior)
      : is_member_(is_member), behavior_(behavior) {
    for (char32_t code = 0; code < ascii_.size(); ++code) ascii_[code] = is_member(code);
  }

  void apply(Pieces& pieces) const override {
    std::vector<Piece> result;
    std::vector<Part> parts;
    for (const Piece& piece : pieces.list) {
      parts.clear();
      std::size_t done = piece.begin;
      pieces.for_each_character(piece, [&](char32_t code, std::size_t begin, std::size_t end) {
        if (!(code < ascii_.size() ? ascii_[code] : is_member_(code))) return;
        if (done < begin) parts.push_back({done, begin, false});
        parts.push_back({begin, end, true});
        done = end;
      });
      if (done < piece.end) parts.push_back({done, piece.end, false});
      append_split(piece, parts, behavior_, result);
    }
    pieces.list = std::move(result);
  }

 private:
  bool (*is_member_)(char32_t);
  std::array<bool, 128> ascii_;  // the same for the first characters
  Behavior behavior_;
};

// Cuts where a pattern matches, or with `invert` where it does not.
class PatternSplit : public PreTokenizer {
 public:
  PatternSplit(std::unique_ptr<TextPattern> pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void apply(Pieces& pieces) const override {
    if (pieces.byte_level) pieces.spell_out();
    std::vector<Piece> result;
    std::vector<Part> parts;
    std::vector<Match> matches;
    for (const Piece& piece : pieces.list) {
      parts.clear();
      const std::string_view text = pieces.at(piece);
      std::size_t done = 0;
      pattern_->find_all(text, matches);
      for (const Match& match : matches) {
        if (done < match.begin) add(piece, done, match.begin, false, parts);
        add(piece, match.begin, match.end, true, parts);
        done = match.end;
      }
      if (done < text.size()) add(piece, done, text.size(), false, parts);
      append_split(piece, parts, behavior_, result);
    }
    pieces.list = std::move(result);
  }

 private:
  void add(const Piece& piece, std::size_t begin, std::size_t end, bool matches,
           std::vector<Part>& parts) const {
    parts.push_back({piece.begin + begin, piece.begin + end, matches != invert_});
  }

  std::unique_ptr<TextPattern> pattern_;
  Behavior behavior_;
  bool invert_;
};

class CharacterSplit : public PreTokenizer {
 public:
  explicit CharacterSplit(char32_t delimiter) : delimiter_(delimiter) {}

  void apply(Pieces& pieces) const override {
    std::vector<Piece> result;
    for (const Piece& piece : pieces.list) {
      std::size_t done = piece.begin;
      const auto add = [&](std::size_t end) {
        if (done < end) result.push_back({done, end, piece.at_start && done == piece.begin});
      };
      pieces.for_each_character(piece, [&](char32_t code, std::size_t begin, std::size_t end) {
        if (code != delimiter_) return;
        add(begin);
        done = end;
      });
      add(piece.end);
    }
    pieces.list = std::move(result);
  }

 private:
  char32_t delimiter_;
};

// Whitespace: runs of word characters, runs of neither word characters nor white space.
class WordSplit : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    enum class Kind { space, word, other };
    std::vector<Piece> result;
    for (const Piece& piece : pieces.list) {
      Kind before = Kind::space;
      pieces.for_each_character(piece, [&](char32_t code, std::size_t begin, std::size_t end) {
        const Kind kind = is_word(code) ? Kind::word : is_space(code) ? Kind::space : Kind::other;
        if (kind != Kind::space && kind == before) {
          result.back().end = end;
        } else if (kind != Kind::space) {
          result.push_back({begin, end, piece.at_start && begin == piece.begin});
        }
        before = kind;
      });
    }
    pieces.list = std::move(result);
  }
};

class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(std::int64_t length) : length_(length) {}

  void apply(Pieces& pieces) const override {
    std::vector<Piece> result;
    for (const Piece& piece : pieces.list) {
      std::int64_t count = 0;
      pieces.for_each_character(piece, [&](char32_t, std::size_t begin, std::size_t end) {
        if (count++ % length_ == 0) {
          result.push_back({begin, end, piece.at_start && begin == piece.begin});
        }
        result.back().end = end;
      });
    }
    pieces.list = std::move(result);
  }

 private:
  std::int64_t length_;
};

// Bytes from here on; before that an optional space in front of each piece and a pattern.
class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, SplitPattern pattern)
      : add_prefix_space_(add_prefix_space), pattern_(pattern) {}

  void apply(Pieces& pieces) const override {
    if (pieces.byte_level) pieces.spell_out();
    if (add_prefix_space_) {
      pieces.rewrite([](const Piece&, std::string_view text, std::string& result) {
        if (!text.starts_with(' ')) result += ' ';
        result += text;
      });
    }
    if (pattern_ != SplitPattern::none) split(pieces);
    pieces.byte_level = true;
  }

 private:
  void split(Pieces& pieces) const {
    std::vector<Piece> result;
    for (const Piece& piece : pieces.list) {
      const std::string_view text = pieces.at(piece);
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = piece_end(pattern_, text, at);
        result.push_back({piece.begin + at, piece.begin + end, piece.at_start && at == 0});
        at = end;
      }
    }
    pieces.list = std::move(result);
  }

  bool add_prefix_space_;
  SplitPattern pattern_;
};

// GPT-2's, none, or the one that a tiktoken file is split by: those are read with its name here.
SplitPattern byte_level_pattern(const JsonFields& fields) {
  if (!fields.find<bool>("use_regex").value_or(true)) return SplitPattern::none;
  const std::optional<SplitPattern> pattern =
      pattern_named(fields.find<std::string>("pattern").value_or("gpt2"));
  if (!pattern) fields.fail("pattern", "the name of a pattern");
  return *pattern;
}

std::unique_ptr<PreTokenizer> read_split(const JsonFields& fields) {
  return std::make_unique<PatternSplit>(read_text_pattern(fields),
                                        read_behavior(fields, Behavior::isolated),
                                        fields.find<bool>("invert").value_or(false));
}

// The steps of one object, a Sequence flattened.
void read_steps(const JsonFields& object, PreTokenizers& result) {
  const std::string type = object.get<std::string>("type");
  const JsonFields fields = object.named("pre_tokenizer " + type);
  auto& steps = result.steps;
  if (type == "Sequence") {
    for (const JsonFields& part : fields.get<std::vector<JsonFields>>("pretokenizers"))
      read_steps(part, result);
  } else if (type == "ByteLevel") {
    steps.push_back(std::make_unique<ByteLevel>(
        fields.find<bool>("add_prefix_space").value_or(true), byte_level_pattern(fields)));
    result.leave_bytes = true;
  } else if (type == "Split") {
    steps.push_back(read_split(fields));
    result.leave_bytes = false;
  } else if (type == "Metaspace") {
    steps.push_back(read_metaspace(fields));
    result.leave_bytes = false;
  } else if (type == "BertPreTokenizer") {
    steps.push_back(std::make_unique<ClassSplit>(is_space, Behavior::removed));
    steps.push_back(std::make_unique<ClassSplit>(is_punctuation, Behavior::isolated));
  } else if (type == "Whitespace") {
    steps.push_back(std::make_unique<WordSplit>());
  } else if (type == "WhitespaceSplit") {
    steps.push_back(std::make_unique<ClassSplit>(is_space, Behavior::removed));
  } else if (type == "Punctuation") {
    steps.push_back(
        std::make_unique<ClassSplit>(is_punctuation, read_behavior(fields, Behavior::isolated)));
  } else if (type == "Digits") {
    const bool each = fields.find<bool>("individual_digits").value_or(false);
    steps.push_back(
        std::make_unique<ClassSplit>(is_numeric, each ? Behavior::isolated : Behavior::contiguous));
  } else if (type == "CharDelimiterSplit") {
    steps.push_back(std::make_unique<CharacterSplit>(read_character(fields, "delimiter")));
  } else if (type == "FixedLength") {
    steps.push_back(std::make_unique<FixedLength>(
        !fields.has("length") ? 5 : fields.whole("length", 1, INT32_MAX)));
  } else {
    throw Error(concat("pre_tokenizer of type '", type, "' is not known"));
  }
}

// Whether a Split leaves exactly the pieces that a pattern which matches everything finds.
std::optional<SplitPattern> whole_text_split(const JsonFields& fields) {
  const auto pattern = fields.find<JsonFields>("pattern");
  if (!pattern || !pattern->has("Regex")) {
    return std::nullopt;
  }
  const Behavior behavior = read_behavior(fields, Behavior::isolated);
  const bool invert = fields.find<bool>("invert").value_or(false);
  if (behavior != Behavior::isolated && !(behavior == Behavior::removed && invert)) {
    return std::nullopt;
  }
  return known_pattern(pattern->get<std::string>("Regex"));
}

// The two steps of a Sequence of two.
std::vector<JsonFields> two_steps(const JsonFields& fields) {
  if (fields.get<std::string>("type") != "Sequence") return {};
  auto steps = fields.get<std::vector<JsonFields>>("pretokenizers");
  return steps.size() == 2 ? std::move(steps) : std::vector<JsonFields>();
}

bool is_of_type(const JsonFields& fields, std::string_view type) {
  return fields.get<std::string>("type") == type;
}

std::optional<PreTokenizers::ByteLevelSplit> find_byte_level(const JsonFields& fields) {
  if (is_of_type(fields, "ByteLevel")) {
    return {{byte_level_pattern(fields), fields.find<bool>("add_prefix_space").value_or(true)}};
  }
  const std::vector<JsonFields> steps = two_steps(fields);
  if (steps.empty() || !is_of_type(steps[0], "Split") || !is_of_type(steps[1], "ByteLevel") ||
      steps[1].find<bool>("use_regex").value_or(true) ||
      steps[1].find<bool>("add_prefix_space").value_or(true)) {
    return std::nullopt;
  }
  const std::optional<SplitPattern> pattern = whole_text_split(steps[0]);
  if (!pattern) return std::nullopt;
  return {{*pattern, false}};
}

bool are_marked_words(const JsonFields& fields) {
  const std::vector<JsonFields> steps = two_steps(fields);
  return !steps.empty() && is_of_type(steps[0], "WhitespaceSplit") &&
         is_of_type(steps[1], "Metaspace") &&
         steps[1].get<std::string>("replacement") == kWordMark &&
         steps[1].find<bool>("split").value_or(true) &&
         read_prepend_scheme(steps[1]) == PrependScheme::always;
}

}  // namespace

void Pieces::spell_out() {
  rewrite([](const Piece&, std::string_view bytes, std::string& result) {
    result += spell_bytes(bytes);
  });
  byte_level = false;
}

PreTokenizers read_pre_tokenizers(const JsonFields& object) {
  PreTokenizers result;
  read_steps(object, result);
  result.byte_level = find_byte_level(object);
  result.marked_words = are_marked_words(object);
  return result;
}

}  // namespace bloomery::hf
