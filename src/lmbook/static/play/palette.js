/* `lmcourse.views.PALETTE`, and five between for twelve heads: more hues than anyone tells
   apart, so what has these colours also has places and names. */
export const COLOURS = [
  "#0072B2",
  "#D55E00",
  "#0EA266",
  "#C37AAB",
  "#96562C",
  "#3067DC",
  "#696969",
  "#8C6BB1",
  "#5B8C2A",
  "#C2504F",
  "#2A8C8C",
  "#A6761D",
];
