// Made by tools/word_tables.py from spaCy 3.8.18 (MIT licence); do not edit.
#include "text/filter/word_tables.h"

namespace bloomery {
namespace {

// ALPHA
const CodeRange kAlphaRanges[] = {
    {0x41, 0x5A},       {0x61, 0x7A},       {0xC0, 0xD6},       {0xD8, 0xF6},
    {0xF8, 0x1BF},      {0x1C4, 0x2AF},     {0x386, 0x386},     {0x388, 0x38A},
    {0x38C, 0x38C},     {0x38E, 0x38F},     {0x391, 0x3A9},     {0x3AC, 0x3AF},
    {0x3B1, 0x3C9},     {0x3CC, 0x3CE},     {0x400, 0x401},     {0x403, 0x40A},
    {0x40C, 0x40D},     {0x410, 0x451},     {0x453, 0x45A},     {0x45C, 0x45D},
    {0x490, 0x491},     {0x496, 0x497},     {0x4A2, 0x4A3},     {0x4AE, 0x4AF},
    {0x4BA, 0x4BB},     {0x4D8, 0x4D9},     {0x4E8, 0x4E9},     {0x591, 0x5F4},
    {0x620, 0x64A},     {0x66E, 0x6D5},     {0x6E5, 0x6FF},     {0x750, 0x77F},
    {0x8A0, 0x8BD},     {0x900, 0x9FF},     {0xB80, 0xCFF},     {0xD80, 0xDFF},
    {0x1100, 0x137F},   {0x1D00, 0x1D25},   {0x1D6B, 0x1D77},   {0x1D79, 0x1D9A},
    {0x1E00, 0x1EFF},   {0x2C60, 0x2C7B},   {0x2C7E, 0x2C7F},   {0x2E80, 0x2FDF},
    {0x2FF0, 0x30FF},   {0x31C0, 0x31EF},   {0x3200, 0x4DBF},   {0x4E00, 0x9FFF},
    {0xA722, 0xA76F},   {0xA771, 0xA787},   {0xA78B, 0xA78E},   {0xA790, 0xA7B9},
    {0xA7FA, 0xA7FA},   {0xAB30, 0xAB5A},   {0xAB60, 0xAB64},   {0xAC00, 0xD7AF},
    {0xF900, 0xFAFF},   {0xFB1D, 0xFBB1},   {0xFBD3, 0xFD3D},   {0xFD50, 0xFDC7},
    {0xFDF0, 0xFDFB},   {0xFE30, 0xFE4F},   {0xFE70, 0xFEFC},   {0xFF21, 0xFF3A},
    {0xFF41, 0xFF5A},   {0x1EE00, 0x1EEBB}, {0x1F200, 0x1F2FF}, {0x20000, 0x2A6DF},
    {0x2A700, 0x2EBEF}, {0x2F800, 0x2FA1F}};

// ICONS
const CodeRange kIconRanges[] = {
    {0xA6, 0xA6},       {0xA9, 0xA9},       {0xAE, 0xAE},       {0xB0, 0xB0},
    {0x482, 0x482},     {0x58D, 0x58E},     {0x60E, 0x60F},     {0x6DE, 0x6DE},
    {0x6E9, 0x6E9},     {0x6FD, 0x6FE},     {0x7F6, 0x7F6},     {0x9FA, 0x9FA},
    {0xB70, 0xB70},     {0xBF3, 0xBF8},     {0xBFA, 0xBFA},     {0xC7F, 0xC7F},
    {0xD4F, 0xD4F},     {0xD79, 0xD79},     {0xF01, 0xF03},     {0xF13, 0xF13},
    {0xF15, 0xF17},     {0xF1A, 0xF1F},     {0xF34, 0xF34},     {0xF36, 0xF36},
    {0xF38, 0xF38},     {0xFBE, 0xFC5},     {0xFC7, 0xFCC},     {0xFCE, 0xFCF},
    {0xFD5, 0xFD8},     {0x109E, 0x109F},   {0x1390, 0x1399},   {0x1940, 0x1940},
    {0x19DE, 0x19FF},   {0x1B61, 0x1B6A},   {0x1B74, 0x1B7C},   {0x2100, 0x2101},
    {0x2103, 0x2106},   {0x2108, 0x2109},   {0x2114, 0x2114},   {0x2116, 0x2117},
    {0x211E, 0x2123},   {0x2125, 0x2125},   {0x2127, 0x2127},   {0x2129, 0x2129},
    {0x212E, 0x212E},   {0x213A, 0x213B},   {0x214A, 0x214A},   {0x214C, 0x214D},
    {0x214F, 0x214F},   {0x218A, 0x218B},   {0x2195, 0x2199},   {0x219C, 0x219F},
    {0x21A1, 0x21A2},   {0x21A4, 0x21A5},   {0x21A7, 0x21AD},   {0x21AF, 0x21CD},
    {0x21D0, 0x21D1},   {0x21D3, 0x21D3},   {0x21D5, 0x21F3},   {0x2300, 0x2307},
    {0x230C, 0x231F},   {0x2322, 0x2328},   {0x232B, 0x237B},   {0x237D, 0x239A},
    {0x23B4, 0x23DB},   {0x23E2, 0x2426},   {0x2440, 0x244A},   {0x249C, 0x24E9},
    {0x2500, 0x25B6},   {0x25B8, 0x25C0},   {0x25C2, 0x25F7},   {0x2600, 0x266E},
    {0x2670, 0x2767},   {0x2794, 0x27BF},   {0x2800, 0x28FF},   {0x2B00, 0x2B2F},
    {0x2B45, 0x2B46},   {0x2B4D, 0x2B73},   {0x2B76, 0x2B95},   {0x2B98, 0x2BC8},
    {0x2BCA, 0x2BFE},   {0x2CE5, 0x2CEA},   {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},
    {0x2F00, 0x2FD5},   {0x2FF0, 0x2FFB},   {0x3004, 0x3004},   {0x3012, 0x3013},
    {0x3020, 0x3020},   {0x3036, 0x3037},   {0x303E, 0x303F},   {0x3190, 0x3191},
    {0x3196, 0x319F},   {0x31C0, 0x31E3},   {0x3200, 0x321E},   {0x322A, 0x3247},
    {0x3250, 0x3250},   {0x3260, 0x327F},   {0x328A, 0x32B0},   {0x32C0, 0x32FE},
    {0x3300, 0x33FF},   {0x4DC0, 0x4DFF},   {0xA490, 0xA4C6},   {0xA828, 0xA82B},
    {0xA836, 0xA837},   {0xA839, 0xA839},   {0xAA77, 0xAA79},   {0xFDFD, 0xFDFD},
    {0xFFE4, 0xFFE4},   {0xFFE8, 0xFFE8},   {0xFFED, 0xFFEE},   {0xFFFC, 0xFFFD},
    {0x10137, 0x1013F}, {0x10179, 0x10189}, {0x1018C, 0x1018E}, {0x10190, 0x1019B},
    {0x101A0, 0x101A0}, {0x101D0, 0x101FC}, {0x10877, 0x10878}, {0x10AC8, 0x10AC8},
    {0x1173F, 0x1173F}, {0x16B3C, 0x16B3F}, {0x16B45, 0x16B45}, {0x1BC9C, 0x1BC9C},
    {0x1D000, 0x1D0F5}, {0x1D100, 0x1D126}, {0x1D129, 0x1D164}, {0x1D16A, 0x1D16C},
    {0x1D183, 0x1D184}, {0x1D18C, 0x1D1A9}, {0x1D1AE, 0x1D1E8}, {0x1D200, 0x1D241},
    {0x1D245, 0x1D245}, {0x1D300, 0x1D356}, {0x1D800, 0x1D9FF}, {0x1DA37, 0x1DA3A},
    {0x1DA6D, 0x1DA74}, {0x1DA76, 0x1DA83}, {0x1DA85, 0x1DA86}, {0x1ECAC, 0x1ECAC},
    {0x1F000, 0x1F02B}, {0x1F030, 0x1F093}, {0x1F0A0, 0x1F0AE}, {0x1F0B1, 0x1F0BF},
    {0x1F0C1, 0x1F0CF}, {0x1F0D1, 0x1F0F5}, {0x1F110, 0x1F16B}, {0x1F170, 0x1F1AC},
    {0x1F1E6, 0x1F202}, {0x1F210, 0x1F23B}, {0x1F240, 0x1F248}, {0x1F250, 0x1F251},
    {0x1F260, 0x1F265}, {0x1F300, 0x1F3FA}, {0x1F400, 0x1F6D4}, {0x1F6E0, 0x1F6EC},
    {0x1F6F0, 0x1F6F9}, {0x1F700, 0x1F773}, {0x1F780, 0x1F7D8}, {0x1F800, 0x1F80B},
    {0x1F810, 0x1F847}, {0x1F850, 0x1F859}, {0x1F860, 0x1F887}, {0x1F890, 0x1F8AD},
    {0x1F900, 0x1F90B}, {0x1F910, 0x1F93E}, {0x1F940, 0x1F970}, {0x1F973, 0x1F976},
    {0x1F97A, 0x1F97A}, {0x1F97C, 0x1F9A2}, {0x1F9B0, 0x1F9B9}, {0x1F9C0, 0x1F9C2},
    {0x1F9D0, 0x1F9FF}, {0x1FA60, 0x1FA6D}};

const char32_t kPunctuationCharacters[] = {
    0x21,  0x23,  0x26,   0x28,   0x29,   0x2A,   0x2C,   0x3A,   0x3B,   0x3C,   0x3E,  0x3F,
    0x5B,  0x5D,  0x5F,   0x7B,   0x7D,   0xA1,   0xB7,   0xBF,   0x60C,  0x61B,  0x61F, 0x66A,
    0x6D4, 0x964, 0x2026, 0x3001, 0x3002, 0xFF01, 0xFF0C, 0xFF1A, 0xFF1B, 0xFF1F, 0xFF5E};

const char32_t kQuoteCharacters[] = {0x22,   0x27,   0x2C,   0x60,   0xAB,   0xB4,   0xBB,   0x2018,
                                     0x2019, 0x201A, 0x201C, 0x201D, 0x201E, 0x2329, 0x232A, 0x27E6,
                                     0x27E7, 0x3008, 0x3009, 0x300A, 0x300B, 0x300C, 0x300D, 0x300E,
                                     0x300F, 0x3010, 0x3011, 0x3014, 0x3015, 0xFF08, 0xFF09};

const char32_t kCurrencyCharacters[] = {
    0x24,   0xA3,   0xA5,   0xE3F,  0x20A0, 0x20A1, 0x20A2, 0x20A3, 0x20A4, 0x20A5,
    0x20A6, 0x20A7, 0x20A8, 0x20A9, 0x20AA, 0x20AB, 0x20AC, 0x20AD, 0x20AE, 0x20AF,
    0x20B0, 0x20B1, 0x20B2, 0x20B3, 0x20B4, 0x20B5, 0x20B6, 0x20B7, 0x20B8, 0x20B9,
    0x20BA, 0x20BB, 0x20BC, 0x20BD, 0x20BE, 0x20BF, 0xFDFC};

}  // namespace

const std::span<const CodeRange> kAlpha = kAlphaRanges;
const std::span<const CodeRange> kIcon = kIconRanges;
const std::span<const char32_t> kPunctuation = kPunctuationCharacters;
const std::span<const char32_t> kQuote = kQuoteCharacters;
const std::span<const char32_t> kCurrency = kCurrencyCharacters;

const std::string_view kUnits = R"words(
km km² km³ m m² m³ dm dm² dm³ cm cm² cm³ mm mm² mm³ ha µm nm yd in ft kg g mg µg t lb oz m/s km/h
kmh mph hPa Pa mbar mb MB kb KB gb GB tb TB T G M K % км км² км³ м м² м³ дм дм² дм³ см см² см³ мм
мм² мм³ нм кг г мг м/с км/ч кПа Па мбар Кб КБ кб Мб МБ мб Гб ГБ гб Тб ТБ тбكم كم² كم³ م م² م³ سم
سم² سم³ مم مم² مم³ كم غرام جرام جم كغ ملغ كوب اكواب)words";

const std::string_view kSpecialWords = R"words(
' '' 'Cause 'Cos 'Coz 'Cuz 'S 'bout 'cause 'cos 'coz 'cuz 'd 'em 'll 'nuff 're 's (*_*) (-8 (-:
(-; (-_-) (._.) (: (; (= (>_<) (^_^) (o: (¬_¬) (ಠ_ಠ) (╯°□°）╯︵┻━┻ )-: ): -_- -__- ._. 0.0 0.o 0_0
0_o 10~a.m. 10~am 10~p.m. 10~pm 11~a.m. 11~am 11~p.m. 11~pm 12~a.m. 12~am 12~p.m. 12~pm 1~a.m.
1~am 1~p.m. 1~pm 2~a.m. 2~am 2~p.m. 2~pm 3~a.m. 3~am 3~p.m. 3~pm 4~a.m. 4~am 4~p.m. 4~pm 5~a.m.
5~am 5~p.m. 5~pm 6~a.m. 6~am 6~p.m. 6~pm 7~a.m. 7~am 7~p.m. 7~pm 8) 8-) 8-D 8D 8~a.m. 8~am 8~p.m.
8~pm 9~a.m. 9~am 9~p.m. 9~pm :'( :') :'-( :'-) :( :(( :((( :() :) :)) :))) :* :-( :-(( :-((( :-)
:-)) :-))) :-* :-/ :-0 :-3 :-> :-D :-O :-P :-X :-] :-o :-p :-x :-| :-} :/ :0 :1 :3 :> :D :O :P :X
:] :o :o) :p :x :| :} :’( :’) :’-( :’-) ;) ;-) ;-D ;D ;_; <.< </3 <3 <33 <333 <space> =( =) =/ =3
=D =[ =] =| >.< >.> >:( >:o ><(((*> @_@ Adm. Ai~n't Ai~nt Ai~n’t Ak. Ala. Apr. Are~n't Are~nt
Are~n’t Ariz. Ark. Aug. Bros. C'm~on C++ Calif. Can~not Ca~n't Ca~n't~'ve Ca~nt Ca~nt~ve Ca~n’t
Ca~n’t~’ve Co. Colo. Conn. Corp. Could~'ve Could~n't Could~n't~'ve Could~nt Could~nt~ve Could~n’t
Could~n’t~’ve Could~ve Could~’ve C’m~on D.C. Dare~n't Dare~nt Dare~n’t Dec. Del. Did~n't
Did~n't~'ve Did~nt Did~nt~ve Did~n’t Did~n’t~’ve Does~n't Does~n't~'ve Does~nt Does~nt~ve Does~n’t
Does~n’t~’ve Doin Doin' Doin’ Do~n't Do~n't~'ve Do~nt Do~nt~ve Do~n’t Do~n’t~’ve Dr. E.G. E.g.
Feb. Fla. Ga. Gen. Goin Goin' Goin’ Gon~na Got~ta Gov. Had~n't Had~n't~'ve Had~nt Had~nt~ve
Had~n’t Had~n’t~’ve Has~n't Has~nt Has~n’t Have~n't Have~nt Have~n’t Havin Havin' Havin’ He~'d
He~'d~'ve He~'ll He~'ll~'ve He~'s He~d He~d~ve He~ll~ve He~s He~’d He~’d~’ve He~’ll He~’ll~’ve
He~’s How~'d How~'d~'ve How~'d~'y How~'ll How~'ll~'ve How~'re How~'s How~'ve How~d How~d~ve How~ll
How~ll~ve How~re How~s How~ve How~’d How~’d~’ve How~’d~’y How~’ll How~’ll~’ve How~’re How~’s
How~’ve I.E. I.e. Ia. Id. Ill. Inc. Ind. Is~n't Is~nt Is~n’t It~'d It~'d~'ve It~'ll It~'ll~'ve
It~'s It~d It~d~ve It~ll It~ll~ve It~’d It~’d~’ve It~’ll It~’ll~’ve It~’s I~'d I~'d~'ve I~'ll
I~'ll~'ve I~'m I~'m~a I~'ve I~d I~d~ve I~ll~ve I~m I~m~a I~ve I~’d I~’d~’ve I~’ll I~’ll~’ve I~’m
I~’m~a I~’ve Jan. Jr. Jul. Jun. Kan. Kans. Ky. La. Let~'s Let~’s Lovin Lovin' Lovin’ Ltd. Ma'am
Mar. Mass. May~n't May~n't~'ve May~nt May~nt~ve May~n’t May~n’t~’ve Ma’am Md. Messrs. Mich.
Might~'ve Might~n't Might~n't~'ve Might~nt Might~nt~ve Might~n’t Might~n’t~’ve Might~ve Might~’ve
Minn. Miss. Mo. Mont. Mr. Mrs. Ms. Mt. Must~'ve Must~n't Must~n't~'ve Must~nt Must~nt~ve Must~n’t
Must~n’t~’ve Must~ve Must~’ve N.C. N.D. N.H. N.J. N.M. N.Y. Neb. Nebr. Need~n't Need~n't~'ve
Need~nt Need~nt~ve Need~n’t Need~n’t~’ve Nev. Nothin Nothin' Nothin’ Not~'ve Not~ve Not~’ve Nov.
Nuthin Nuthin' Nuthin’ O'clock O.O O.o O_O O_o Oct. Okla. Ol Ol' Ol’ Ore. Ought~n't Ought~n't~'ve
Ought~nt Ought~nt~ve Ought~n’t Ought~n’t~’ve O’clock Pa. Ph.D. Prof. Rep. Rev. S.C. Sen. Sep.
Sept. Sha~n't Sha~n't~'ve Sha~nt Sha~nt~ve Sha~n’t Sha~n’t~’ve She~'d She~'d~'ve She~'ll
She~'ll~'ve She~'s She~d~ve She~ll~ve She~s She~’d She~’d~’ve She~’ll She~’ll~’ve She~’s
Should~'ve Should~n't Should~n't~'ve Should~nt Should~nt~ve Should~n’t Should~n’t~’ve Should~ve
Should~’ve Somethin Somethin' Somethin’ St. Tenn. That~'d That~'d~'ve That~'ll That~'ll~'ve
That~'s That~d That~d~ve That~ll That~ll~ve That~s That~’d That~’d~’ve That~’ll That~’ll~’ve
That~’s There~'d There~'d~'ve There~'ll There~'ll~'ve There~'re There~'s There~'ve There~d
There~d~ve There~ll There~ll~ve There~re There~s There~ve There~’d There~’d~’ve There~’ll
There~’ll~’ve There~’re There~’s There~’ve These~'d These~'d~'ve These~'ll These~'ll~'ve These~'re
These~'ve These~d These~d~ve These~ll These~ll~ve These~re These~ve These~’d These~’d~’ve
These~’ll These~’ll~’ve These~’re These~’ve They~'d They~'d~'ve They~'ll They~'ll~'ve They~'re
They~'ve They~d They~d~ve They~ll They~ll~ve They~re They~ve They~’d They~’d~’ve They~’ll
They~’ll~’ve They~’re They~’ve This~'d This~'d~'ve This~'ll This~'ll~'ve This~'s This~d This~d~ve
This~ll This~ll~ve This~s This~’d This~’d~’ve This~’ll This~’ll~’ve This~’s Those~'d Those~'d~'ve
Those~'ll Those~'ll~'ve Those~'re Those~'ve Those~d Those~d~ve Those~ll Those~ll~ve Those~re
Those~ve Those~’d Those~’d~’ve Those~’ll Those~’ll~’ve Those~’re Those~’ve V.V V_V Va. Wash.
Was~n't Was~nt Was~n’t Were~n't Were~nt Were~n’t We~'d We~'d~'ve We~'ll We~'ll~'ve We~'re We~'ve
We~d We~d~ve We~ll~ve We~ve We~’d We~’d~’ve We~’ll We~’ll~’ve We~’re We~’ve What~'d What~'d~'ve
What~'ll What~'ll~'ve What~'re What~'s What~'ve What~d What~d~ve What~ll What~ll~ve What~re What~s
What~ve What~’d What~’d~’ve What~’ll What~’ll~’ve What~’re What~’s What~’ve When~'d When~'d~'ve
When~'ll When~'ll~'ve When~'re When~'s When~'ve When~d When~d~ve When~ll When~ll~ve When~re When~s
When~ve When~’d When~’d~’ve When~’ll When~’ll~’ve When~’re When~’s When~’ve Where~'d Where~'d~'ve
Where~'ll Where~'ll~'ve Where~'re Where~'s Where~'ve Where~d Where~d~ve Where~ll Where~ll~ve
Where~re Where~s Where~ve Where~’d Where~’d~’ve Where~’ll Where~’ll~’ve Where~’re Where~’s
Where~’ve Who~'d Who~'d~'ve Who~'ll Who~'ll~'ve Who~'re Who~'s Who~'ve Who~d Who~d~ve Who~ll
Who~ll~ve Who~s Who~ve Who~’d Who~’d~’ve Who~’ll Who~’ll~’ve Who~’re Who~’s Who~’ve Why~'d
Why~'d~'ve Why~'ll Why~'ll~'ve Why~'re Why~'s Why~'ve Why~d Why~d~ve Why~ll Why~ll~ve Why~re Why~s
Why~ve Why~’d Why~’d~’ve Why~’ll Why~’ll~’ve Why~’re Why~’s Why~’ve Wis. Would~'ve Would~n't
Would~n't~'ve Would~nt Would~nt~ve Would~n’t Would~n’t~’ve Would~ve Would~’ve Wo~n't Wo~n't~'ve
Wo~nt Wo~nt~ve Wo~n’t Wo~n’t~’ve XD XDD You~'d You~'d~'ve You~'ll You~'ll~'ve You~'re You~'ve
You~d You~d~ve You~ll You~ll~ve You~re You~ve You~’d You~’d~’ve You~’ll You~’ll~’ve You~’re
You~’ve [-: [: [= \") \n \t ]= ^_^ ^__^ ^___^ a. a.m. ai~n't ai~nt ai~n’t and/or are~n't are~nt
are~n’t b. c'm~on c. can~not ca~n't ca~n't~'ve ca~nt ca~nt~ve ca~n’t ca~n’t~’ve co. could~'ve
could~n't could~n't~'ve could~nt could~nt~ve could~n’t could~n’t~’ve could~ve could~’ve c’m~on d.
dare~n't dare~nt dare~n’t did~n't did~n't~'ve did~nt did~nt~ve did~n’t did~n’t~’ve does~n't
does~n't~'ve does~nt does~nt~ve does~n’t does~n’t~’ve doin doin' doin’ do~n't do~n't~'ve do~nt
do~nt~ve do~n’t do~n’t~’ve e. e.g. em f. g. goin goin' goin’ gon~na got~ta h. had~n't had~n't~'ve
had~nt had~nt~ve had~n’t had~n’t~’ve has~n't has~nt has~n’t have~n't have~nt have~n’t havin havin'
havin’ he~'d he~'d~'ve he~'ll he~'ll~'ve he~'s he~d he~d~ve he~ll~ve he~s he~’d he~’d~’ve he~’ll
he~’ll~’ve he~’s how~'d how~'d~'ve how~'d~'y how~'ll how~'ll~'ve how~'re how~'s how~'ve how~d
how~d~ve how~ll how~ll~ve how~re how~s how~ve how~’d how~’d~’ve how~’d~’y how~’ll how~’ll~’ve
how~’re how~’s how~’ve i. i.e. is~n't is~nt is~n’t it~'d it~'d~'ve it~'ll it~'ll~'ve it~'s it~d
it~d~ve it~ll it~ll~ve it~’d it~’d~’ve it~’ll it~’ll~’ve it~’s i~'d i~'d~'ve i~'ll i~'ll~'ve i~'m
i~'m~a i~'ve i~d i~d~ve i~ll~ve i~m i~m~a i~ve i~’d i~’d~’ve i~’ll i~’ll~’ve i~’m i~’m~a i~’ve j.
k. l. let~'s let~’s ll lovin lovin' lovin’ m. ma'am may~n't may~n't~'ve may~nt may~nt~ve may~n’t
may~n’t~’ve ma’am might~'ve might~n't might~n't~'ve might~nt might~nt~ve might~n’t might~n’t~’ve
might~ve might~’ve must~'ve must~n't must~n't~'ve must~nt must~nt~ve must~n’t must~n’t~’ve must~ve
must~’ve n. need~n't need~n't~'ve need~nt need~nt~ve need~n’t need~n’t~’ve nothin nothin' nothin’
not~'ve not~ve not~’ve nuff nuthin nuthin' nuthin’ o'clock o. o.0 o.O o.o o_0 o_O o_o ol ol' ol’
ought~n't ought~n't~'ve ought~nt ought~nt~ve ought~n’t ought~n’t~’ve o’clock p. p.m. q. r. s.
sha~n't sha~n't~'ve sha~nt sha~nt~ve sha~n’t sha~n’t~’ve she~'d she~'d~'ve she~'ll she~'ll~'ve
she~'s she~d~ve she~ll~ve she~s she~’d she~’d~’ve she~’ll she~’ll~’ve she~’s should~'ve should~n't
should~n't~'ve should~nt should~nt~ve should~n’t should~n’t~’ve should~ve should~’ve somethin
somethin' somethin’ t. that~'d that~'d~'ve that~'ll that~'ll~'ve that~'s that~d that~d~ve that~ll
that~ll~ve that~s that~’d that~’d~’ve that~’ll that~’ll~’ve that~’s there~'d there~'d~'ve
there~'ll there~'ll~'ve there~'re there~'s there~'ve there~d there~d~ve there~ll there~ll~ve
there~re there~s there~ve there~’d there~’d~’ve there~’ll there~’ll~’ve there~’re there~’s
there~’ve these~'d these~'d~'ve these~'ll these~'ll~'ve these~'re these~'ve these~d these~d~ve
these~ll these~ll~ve these~re these~ve these~’d these~’d~’ve these~’ll these~’ll~’ve these~’re
these~’ve they~'d they~'d~'ve they~'ll they~'ll~'ve they~'re they~'ve they~d they~d~ve they~ll
they~ll~ve they~re they~ve they~’d they~’d~’ve they~’ll they~’ll~’ve they~’re they~’ve this~'d
this~'d~'ve this~'ll this~'ll~'ve this~'s this~d this~d~ve this~ll this~ll~ve this~s this~’d
this~’d~’ve this~’ll this~’ll~’ve this~’s those~'d those~'d~'ve those~'ll those~'ll~'ve those~'re
those~'ve those~d those~d~ve those~ll those~ll~ve those~re those~ve those~’d those~’d~’ve
those~’ll those~’ll~’ve those~’re those~’ve u. v. v.s. v.v v_v vs. w. w/o was~n't was~nt was~n’t
were~n't were~nt were~n’t we~'d we~'d~'ve we~'ll we~'ll~'ve we~'re we~'ve we~d we~d~ve we~ll~ve
we~ve we~’d we~’d~’ve we~’ll we~’ll~’ve we~’re we~’ve what~'d what~'d~'ve what~'ll what~'ll~'ve
what~'re what~'s what~'ve what~d what~d~ve what~ll what~ll~ve what~re what~s what~ve what~’d
what~’d~’ve what~’ll what~’ll~’ve what~’re what~’s what~’ve when~'d when~'d~'ve when~'ll
when~'ll~'ve when~'re when~'s when~'ve when~d when~d~ve when~ll when~ll~ve when~re when~s when~ve
when~’d when~’d~’ve when~’ll when~’ll~’ve when~’re when~’s when~’ve where~'d where~'d~'ve
where~'ll where~'ll~'ve where~'re where~'s where~'ve where~d where~d~ve where~ll where~ll~ve
where~re where~s where~ve where~’d where~’d~’ve where~’ll where~’ll~’ve where~’re where~’s
where~’ve who~'d who~'d~'ve who~'ll who~'ll~'ve who~'re who~'s who~'ve who~d who~d~ve who~ll
who~ll~ve who~s who~ve who~’d who~’d~’ve who~’ll who~’ll~’ve who~’re who~’s who~’ve why~'d
why~'d~'ve why~'ll why~'ll~'ve why~'re why~'s why~'ve why~d why~d~ve why~ll why~ll~ve why~re why~s
why~ve why~’d why~’d~’ve why~’ll why~’ll~’ve why~’re why~’s why~’ve would~'ve would~n't
would~n't~'ve would~nt would~nt~ve would~n’t would~n’t~’ve would~ve would~’ve wo~n't wo~n't~'ve
wo~nt wo~nt~ve wo~n’t wo~n’t~’ve x. xD xDD y'~all y. you~'d you~'d~'ve you~'ll you~'ll~'ve you~'re
you~'ve you~d you~d~ve you~ll you~ll~ve you~re you~ve you~’d you~’d~’ve you~’ll you~’ll~’ve
you~’re you~’ve y~all y’~all z. ¯\(ツ)/¯ °~C~. °~F~. °~K~. °~c~. °~f~. °~k~. ä. ö. ü. ಠ_ಠ ಠ︵ಠ — ‘S
‘s ’ ’Cause ’Cos ’Coz ’Cuz ’S ’bout ’cause ’cos ’coz ’cuz ’d ’em ’ll ’nuff ’re ’s ’’)words";

}  // namespace bloomery
