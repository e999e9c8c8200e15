// Reads the expressions of a grammar: words, {variable.field}, <rule> and (alternatives|...).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/stories/grammar.h"

namespace bloomery {

class ExpressionReader {
 public:
  // A reference to what may stand further down in the text.
  struct Reference {
    NodeId node;
    int line;
    std::string rule;                    // of <rule>, else empty
    std::string variable, table, field;  // table: of an introduction, else empty
  };
  struct Weighted {
    NodeId node;
    std::uint32_t weight;
  };

  explicit ExpressionReader(GrammarParts& parts) : parts_(parts) {}

  // All of the text: one sequence with its weight.
  Weighted read_line(std::string_view text, int line);
  NodeId add_choice(const std::vector<Weighted>& alternatives, int line);
  VariableId variable(const std::string& name);
  const std::vector<Reference>& references() const { return references_; }

 private:
  Weighted read_sequence();
  NodeId read_item();
  NodeId read_reference(char closing);
  NodeId read_choice();
  NodeId add_word();
  NodeId add(GrammarNode node);
  std::uint32_t read_weight();
  void skip_spaces();
  bool at_end() const { return at_ == text_.size(); }

  GrammarParts& parts_;
  std::map<std::string, WordId, std::less<>> words_;
  std::map<std::string, VariableId> variables_;
  std::vector<Reference> references_;
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 0;
};

}  // namespace bloomery
