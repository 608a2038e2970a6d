export const chart = () => "<svg/>";
