export const costPage = () => "";
