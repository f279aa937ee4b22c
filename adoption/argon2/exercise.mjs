// For `allstop check-addon`: a worker ends while three passwords are being hashed.
export default async ({ hash }) => {
  await hash('password', { timeCost: 2 });
  for (let i = 0; i < 3; i++) hash('password', { timeCost: 12 }).catch(() => {});
};
