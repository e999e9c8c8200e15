#include <algorithm>

#include "base/error.h"
#include "text/input/line_format.h"
#include "text/stories/expression_reader.h"
#include "text/stories/grammar.h"

namespace bloomery {
namespace {

struct Table {
  std::vector<std::string> fields;
  std::vector<std::vector<NodeId>> records;  // the expression of each field
  std::vector<std::uint32_t> weights;
};

struct Rule {
  int line = 0;
  std::vector<ExpressionReader::Weighted> alternatives;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string_view> split_fields(std::string_view text) {
  std::vector<std::string_view> fields;
  for (std::size_t slash = 0; slash != std::string_view::npos;) {
    slash = text.find('/');
    fields.push_back(trimmed(text.substr(0, slash)));
    text.remove_prefix(slash == std::string_view::npos ? text.size() : slash + 1);
  }
  return fields;
}

class Reader {
 public:
  GrammarParts read(std::string_view text) {
    std::size_t at = 0;
    for (int line = 1; at < text.size(); ++line) {
      const std::string_view whole = next_line(text, at);
      if (!is_blank(whole) && trimmed(whole)[0] != '#') take(whole, line);
    }
    end_entry();
    resolve();
    return std::move(parts_);
  }

 private:
  void take(std::string_view whole, int line) {
    const std::size_t indent = whole.find_first_not_of(' ');
    if (indent >= 4 && !entry_.empty()) {
      entry_ += ' ';
      entry_ += trimmed(whole);
      return;
    }
    end_entry();
    if (indent > 0) {
      check(table_ != nullptr || rule_ != nullptr, "story grammar, line ", line,
            ": belongs to no table or rule");
      entry_ = trimmed(whole);
      entry_line_ = line;
    } else {
      begin(whole, line);
    }
  }

  // "table NAME: field / field" or "rule NAME".
  void begin(std::string_view heading, int line) {
    table_ = nullptr;
    rule_ = nullptr;
    const std::size_t colon = heading.find(':');
    if (heading.starts_with("table ") && colon != std::string_view::npos) {
      const std::string name(trimmed(heading.substr(6, colon - 6)));
      const auto [found, is_new] = tables_.try_emplace(name);
      check(is_new, "story grammar, line ", line, ": a second table ", name);
      table_ = &found->second;
      for (const std::string_view field : split_fields(heading.substr(colon + 1))) {
        table_->fields.emplace_back(field);
      }
      return;
    }
    check(heading.starts_with("rule "), "story grammar, line ", line,
          ": neither 'table NAME: FIELD / ...' nor 'rule NAME'");
    const std::string name(trimmed(heading.substr(5)));
    const auto [found, is_new] = rules_.try_emplace(name, Rule{line, {}});
    check(is_new, "story grammar, line ", line, ": a second rule ", name);
    rule_ = &found->second;
    if (start_.empty()) start_ = name;
  }

  void end_entry() {
    if (entry_.empty()) return;
    if (rule_ != nullptr) {
      rule_->alternatives.push_back(expressions_.read_line(entry_, entry_line_));
    } else {
      add_record();
    }
    entry_.clear();
  }

  void add_record() {
    const std::vector<std::string_view> fields = split_fields(entry_);
    check(fields.size() == table_->fields.size(), "story grammar, line ", entry_line_, ": ",
          fields.size(), " fields, the table has ", table_->fields.size());
    std::vector<NodeId> record;
    for (const std::string_view field : fields) {
      const auto [node, weight] = expressions_.read_line(field, entry_line_);
      if (record.empty()) table_->weights.push_back(weight);
      record.push_back(node);
    }
    table_->records.push_back(std::move(record));
  }

  void resolve() {
    check(!start_.empty(), "story grammar: no rule");
    std::map<std::string, NodeId> node_of_rule;
    for (const auto& [name, rule] : rules_) {
      check(!rule.alternatives.empty(), "story grammar, line ", rule.line, ": an empty rule");
      node_of_rule[name] = expressions_.add_choice(rule.alternatives, rule.line);
    }
    parts_.start = node_of_rule[start_];
    std::map<std::string, std::string> table_of_variable;
    for (const ExpressionReader::Reference& reference : expressions_.references()) {
      if (reference.table.empty()) continue;
      const auto [found, is_new] =
          table_of_variable.try_emplace(reference.variable, reference.table);
      check(is_new || found->second == reference.table, "story grammar, line ", reference.line,
            ": ", reference.variable, " is of table ", found->second, " elsewhere");
    }
    for (const ExpressionReader::Reference& reference : expressions_.references()) {
      if (reference.rule.empty()) {
        resolve_field(reference, table_of_variable[reference.variable]);
      } else {
        const auto rule = node_of_rule.find(reference.rule);
        check(rule != node_of_rule.end(), "story grammar, line ", reference.line, ": no rule ",
              reference.rule);
        parts_.nodes[reference.node].parts = {rule->second};
      }
    }
  }

  void resolve_field(const ExpressionReader::Reference& reference, const std::string& table_name) {
    const auto found = tables_.find(table_name);
    check(found != tables_.end() && !found->second.records.empty(), "story grammar, line ",
          reference.line, ": ", reference.variable, " has no table, or an empty one");
    const Table& table = found->second;
    const auto field = std::ranges::find(table.fields, reference.field);
    check(field != table.fields.end(), "story grammar, line ", reference.line, ": table ",
          table_name, " has no field ", reference.field);
    GrammarNode& node = parts_.nodes[reference.node];
    node.weights = table.weights;
    for (std::size_t i = 0; i < table.records.size(); ++i) {
      node.parts.push_back(
          table.records[i][static_cast<std::size_t>(field - table.fields.begin())]);
      node.total_weight += table.weights[i];
    }
  }

  GrammarParts parts_;
  ExpressionReader expressions_{parts_};
  std::map<std::string, Table> tables_;
  std::map<std::string, Rule> rules_;
  std::string start_;
  Table* table_ = nullptr;  // the one that lines belong to now, else
  Rule* rule_ = nullptr;
  std::string entry_;  // a record or an alternative, so far
  int entry_line_ = 0;
};

}  // namespace

GrammarParts read_grammar(std::string_view text) { return Reader().read(text); }

}  // namespace bloomery
