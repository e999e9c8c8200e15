#include "samples/instruct/instruct_options.h"

#include "config/option_table.h"

namespace bloomery {

void describe(OptionTable& t, InstructOptions& o) {
  t.section("instructions");
  t.add("record-format", o.format, "Shape of the records; auto recognises it by the keys.",
        {{"auto", RecordFormat::automatic},
         {"messages", RecordFormat::messages},
         {"sharegpt", RecordFormat::sharegpt},
         {"alpaca", RecordFormat::alpaca},
         {"dolly", RecordFormat::dolly},
         {"pairs", RecordFormat::pairs},
         {"columns", RecordFormat::columns}});
  t.add("chat-template", o.chat_template,
        "File with the Jinja template that makes a text of messages, stored with the model; none: "
        "the model's own, else a built-in one.");
  t.add("prompt-template", o.prompt_template,
        "File with a Jinja template of the record's columns instead, answers in {% generation %}; "
        "alpaca; or plain, {{ prompt }} and what completes it.");
  t.add("only", o.only, "COLUMN=VALUE: train on records with that text in the column alone.");
  t.add("loss-on", o.loss_on, "What is learnt: the answers, or all tokens.",
        {{"answers", LossOn::answers}, {"all", LossOn::all}});
  t.add("response-template", o.response_template,
        "The text before answers, found among the tokens as TRL's collator does, in place of what "
        "the template marks; \\n is a new line.");
  t.add("instruction-template", o.instruction_template,
        "The text before questions; with --response-template, for several turns.");
  t.add("packing", o.packing,
        "Put several records into a sequence, each with attention and positions of its own.");
  t.add("dpo", o.pairs,
        "Learn from pairs of answers, chosen and rejected, which of them is preferred.");
  t.add("epochs", o.epochs,
        "Passes over the records; none: 3, unless --train-iters says how long. With --task 0 only "
        "evaluates.",
        at_least(0));
}

}  // namespace bloomery
