#include "samples/instruct/instruct_options.h"

#include "config/option_table.h"

namespace bloomery {

void describe(OptionTable& t, InstructOptions& o) {
  t.section("instructions");
  t.add("record-format", o.format, "Format of the records; auto recognizes it by the keys.",
        {{"auto", RecordFormat::automatic},
         {"messages", RecordFormat::messages},
         {"sharegpt", RecordFormat::sharegpt},
         {"alpaca", RecordFormat::alpaca},
         {"dolly", RecordFormat::dolly},
         {"pairs", RecordFormat::pairs},
         {"columns", RecordFormat::columns}});
  t.add("chat-template", o.chat_template,
        "Chat template, a Jinja file, stored with the model; none: the model's own, otherwise a "
        "built-in one.");
  t.add("prompt-template", o.prompt_template,
        "Prompt template instead of a chat template: a Jinja file over the record's columns with "
        "answers in {% generation %}, or alpaca, or plain ({{ prompt }} and its completion).");
  t.add("only", o.only, "COLUMN=VALUE: train only on records with this value.");
  t.add("loss-on", o.loss_on, "Tokens in the loss: the answers, or all tokens.",
        {{"answers", LossOn::answers}, {"all", LossOn::all}});
  t.add("response-template", o.response_template,
        "Text that precedes answers, as for TRL's collator, instead of the template's marks; \\n "
        "is a new line.");
  t.add("instruction-template", o.instruction_template,
        "Text that precedes questions, with --response-template, for several turns.");
  t.add("packing", o.packing,
        "Pack several records into a sequence, with attention and positions of their own.");
  t.add("dpo", o.pairs, "Train on preference pairs (chosen and rejected answers) with DPO.");
  t.add("epochs", o.epochs,
        "Epochs; none: 3, unless --train-iters is given. With --task, 0 evaluates only.",
        at_least(0));
}

}  // namespace bloomery
